// The end of `npm test`: what was skipped and why that matters, then `N passed, N failed` as the last line.
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

export default class SummaryReporter implements Reporter {
  /** With CI=true a skipped test counts as failed: a control that was not tried is not a control. */
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const strict = process.env['CI'] === 'true'
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const inState = (state: string) => tests.filter((test) => test.result().state === state)
    const skipped = inState('skipped')
    // A module that fails to load or a hook outside a test has no test to stand for it
    const broken = modules.filter((module) => module.errors().length > 0)
    const failed = inState('failed').length + broken.length + unhandled.length + (strict ? skipped.length : 0)
    if (skipped.length > 0) {
      console.log(`\nskipped${strict ? ', which fails in CI' : ''}:`)
      for (const test of skipped) {
        const { note } = test.result() as { note?: string }
        console.log(`  ${test.module.relativeModuleId} > ${test.fullName}${note ? `: ${note}` : ''}`)
      }
    }
    console.log(`\n${inState('passed').length} passed, ${failed} failed`)
    if (failed > 0) process.exitCode = 1
  }
}
