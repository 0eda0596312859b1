// The end of `npm test`: what was skipped and why that matters, what failed, then `N passed, N failed` as the last line.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

/** What a test is called across runs. */
const nameOf = (test: TestCase): string => `${test.module.relativeModuleId} > ${test.fullName}`

/** One line for each failure, which `.ci/run` says again at its end. */
function sayFailed(name: string, error: { readonly message: string } | undefined): void {
  const [reason = ''] = (error?.message ?? 'no reason given').split('\n', 1)
  console.log(`FAILED: ${name}: ${reason.slice(0, 300)}`)
}

export default class SummaryReporter implements Reporter {
  /**
   * With CI=true a skipped test counts as failed: a control that was not tried is not a control. Some need root, so an
   * ordinary user's skip is excused, unless $SALLYPORT_TEST_LEDGER names the tests that passed before and it is not one.
   */
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const inState = (state: string): readonly TestCase[] =>
      tests.filter((test) => test.result().state === state)
    const passedBefore = this.#ledger(inState('passed'))
    const isStrict = process.env['CI'] === 'true' && (process.getuid?.() === 0 || passedBefore !== null)
    const skipped = inState('skipped').map((test) => ({
      name: nameOf(test),
      note: (test.result() as { readonly note?: string }).note,
      isFailure: isStrict && passedBefore?.has(nameOf(test)) !== true,
    }))
    // A module that fails to load or a hook outside a test has no test to stand for it
    const broken = modules.filter((module) => module.errors().length > 0)
    const unproven = skipped.filter(({ isFailure }) => isFailure)
    const failed = inState('failed').length + broken.length + unhandled.length + unproven.length
    if (skipped.length > 0) console.log('\nskipped:')
    for (const { name, note, isFailure } of skipped)
      console.log(`  ${name}${note ? `: ${note}` : ''}${isFailure ? ' (a failure in CI)' : ''}`)
    const flaky = inState('passed').filter((test) => test.diagnostic()?.flaky === true)
    if (flaky.length > 0) console.log('\npassed at the second try:')
    for (const test of flaky) {
      console.log(`  ${nameOf(test)}`)
      for (const { message } of test.result().errors ?? [])
        console.log(`    ${message.split('\n', 1)[0]?.slice(0, 300)}`)
    }
    if (failed > 0) console.log('\nfailed:')
    for (const test of inState('failed')) sayFailed(nameOf(test), test.result().errors?.[0])
    for (const module of broken) sayFailed(module.relativeModuleId, module.errors()[0])
    for (const error of unhandled) sayFailed('outside every test', error)
    for (const { name } of unproven) sayFailed(name, { message: 'skipped' })
    console.log(`\n${inState('passed').length} passed, ${failed} failed`)
    if (failed > 0) process.exitCode = 1
  }

  /** The first run with a ledger writes it; a later one reads it. */
  #ledger(passed: readonly TestCase[]): ReadonlySet<string> | null {
    const path = process.env['SALLYPORT_TEST_LEDGER']
    if (path === undefined) return null
    if (existsSync(path)) return new Set(readFileSync(path, 'utf8').split('\n'))
    writeFileSync(path, passed.map((test) => `${nameOf(test)}\n`).join(''), { mode: 0o644 })
    return null
  }
}
