// `npm test`: the tests, once more with the machine to itself what failed among all the others, and a summary as its end. Takes what
// `vitest run` takes.
import { type CliOptions, createVitest, parseCLI, TestsNotFoundError } from 'vitest/node'
import { failedOf, merged, outcomesOf, sayOutcomes } from './outcomes.ts'

/** So many that fail have a cause in common, which trying again only hides. */
const fewTests = 20

Object.assign(process.env, { TEST: 'true', VITEST: 'true' })
process.env['NODE_ENV'] ??= 'test'
const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)])
const { exclude = [], ...others } = options
const settings: CliOptions = { ...others, cliExclude: [exclude].flat(), watch: false }
const vitest = await createVitest(settings)
try {
  const { testModules, unhandledErrors } = await vitest.start(filter)
  const tried = outcomesOf(testModules, unhandledErrors)
  const failed = failedOf(testModules)
  const isWorthIt =
    failed.length > 0 &&
    [...tried.tests.values()].filter(({ state }) => state === 'failed').length <= fewTests
  if (isWorthIt) console.log('\nwhat failed, once more and with the machine to itself:')
  const again = isWorthIt ? await vitest.runTestSpecifications([...failed]) : null
  const outcomes =
    again === null ? tried : merged(tried, outcomesOf(again.testModules, again.unhandledErrors))
  process.exitCode = sayOutcomes(outcomes, tried, (line) => console.log(line)) === 0 ? 0 : 1
} catch (error) {
  if (!(error instanceof TestsNotFoundError)) throw error
  process.exitCode = 1 // which vitest has said
} finally {
  await vitest.exit()
}
