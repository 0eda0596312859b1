// What came of each test, and how it is summed up: what was skipped, what needed a second try, what failed, and how many.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { TestCase, TestModule, TestSpecification } from 'vitest/node'

/** What came of one test. */
export interface Outcome {
  readonly name: string
  readonly state: 'passed' | 'failed' | 'skipped' | 'pending'
  /** Why it failed, or was skipped; one line */
  readonly reason: string
}

/** What came of a run: outcomes by the tests' ids, and failures that no test stands for, as lines. */
export interface Outcomes {
  readonly tests: ReadonlyMap<string, Outcome>
  /** By the path of the file: it did not load, or a hook of it failed */
  readonly broken: ReadonlyMap<string, string>
  readonly elsewhere: readonly string[]
}

const firstLine = (error: unknown): string => {
  const message = error instanceof Object && 'message' in error ? String(error.message) : String(error)
  return message.split('\n', 1)[0]?.slice(0, 300) ?? ''
}

const outcomeOf = (test: TestCase, why: string | null): Outcome => {
  const result = test.result()
  const note = 'note' in result ? result.note : undefined
  const reason = result.state === 'failed' ? firstLine(result.errors[0]) : (note ?? why ?? '')
  return { name: `${test.module.relativeModuleId} > ${test.fullName}`, state: result.state, reason }
}

/** What failed in a file beside its tests: loading it, or a hook around them. */
const errorOf = (module: TestModule): string | null => {
  const all = [...module.children.allSuites()].flatMap((suite) => suite.errors())
  const [first] = [...module.errors(), ...all]
  return first === undefined ? null : firstLine(first)
}

/** What came of a run of these files. */
export const outcomesOf = (modules: readonly TestModule[], unhandled: readonly unknown[]): Outcomes => ({
  tests: new Map(
    modules.flatMap((module) => {
      const error = errorOf(module)
      return [...module.children.allTests()].map((test) => [test.id, outcomeOf(test, error)])
    }),
  ),
  broken: new Map(
    modules.flatMap((module) => {
      const error = errorOf(module)
      return error === null ? [] : [[module.relativeModuleId, error]]
    }),
  ),
  elsewhere: unhandled.map(firstLine),
})

/** What there is to try again: the tests that failed, and the whole of a file of which something else did. */
export const failedOf = (modules: readonly TestModule[]): readonly TestSpecification[] =>
  modules.flatMap((module) => {
    if (errorOf(module) !== null) return [module.toTestSpecification()]
    const failed = [...module.children.allTests()].filter((test) => test.result().state === 'failed')
    return failed.length === 0 ? [] : [module.toTestSpecification(failed)]
  })

/** A run, and what a second one of some of its files has shown: that counts. What the second one left out stays as it was. */
export const merged = (first: Outcomes, second: Outcomes): Outcomes => {
  const isNews = ([id, { state }]: readonly [string, Outcome]): boolean =>
    state !== 'skipped' || !first.tests.has(id)
  return {
    tests: new Map([...first.tests, ...[...second.tests].filter(isNews)]),
    broken: second.broken,
    elsewhere: [...first.elsewhere, ...second.elsewhere],
  }
}

/**
 * Whether a test that is skipped counts as failed, as with CI=true: a control that was not tried is not a control. Some need root, so
 * an ordinary user's skip is excused, unless $SALLYPORT_TEST_LEDGER names the tests that passed before and it is not one.
 */
const judgeSkips = (passed: readonly string[]): ((name: string) => boolean) => {
  const before = ledger(passed)
  const isStrict = process.env['CI'] === 'true' && (process.getuid?.() === 0 || before !== null)
  return (name) => isStrict && before?.has(name) !== true
}

/** The first run with a ledger writes it; a later one reads it. */
const ledger = (passed: readonly string[]): ReadonlySet<string> | null => {
  const path = process.env['SALLYPORT_TEST_LEDGER']
  if (path === undefined) return null
  if (existsSync(path)) return new Set(readFileSync(path, 'utf8').split('\n'))
  writeFileSync(path, passed.map((name) => `${name}\n`).join(''), { mode: 0o644 })
  return null
}

/** Says it all, ends with `N passed, N failed`, and gives how many failed. `tried` is what the first try had shown. */
export const sayOutcomes = (outcomes: Outcomes, tried: Outcomes, say: (line: string) => void): number => {
  const all = [...outcomes.tests.values()]
  const passed = all.filter(({ state }) => state === 'passed')
  const isFailure = judgeSkips(passed.map(({ name }) => name))
  const skipped = all.filter(({ state }) => state === 'skipped')
  const unproven = skipped.filter(({ name }) => isFailure(name))
  const failures = [
    ...all
      .filter(({ state }) => state === 'failed' || state === 'pending')
      .map(({ name, reason }) => `${name}: ${reason}`),
    ...[...outcomes.broken].map(([file, reason]) => `${file}: ${reason}`),
    ...outcomes.elsewhere.map((reason) => `outside every test: ${reason}`),
    ...unproven.map(({ name }) => `${name}: skipped`),
  ]
  const again = [...outcomes.tests].flatMap(([id, { name, state }]) => {
    const before = tried.tests.get(id)
    return state === 'passed' && before?.state !== 'passed' ? [`${name}\n    ${before?.reason ?? ''}`] : []
  })
  if (skipped.length > 0) say('\nskipped:')
  for (const { name, reason } of skipped)
    say(`  ${name}${reason && `: ${reason}`}${isFailure(name) ? ' (a failure in CI)' : ''}`)
  if (again.length > 0) say('\npassed at the second try, with the machine to itself:')
  for (const line of again) say(`  ${line}`)
  if (failures.length > 0) say('\nfailed:')
  for (const line of failures) say(`FAILED: ${line}`)
  say(`\n${passed.length} passed, ${failures.length} failed`)
  return failures.length
}
