// A report for people: one line for a profile that holds, and everything about what does not.
import { isGreen, overall, type Verification } from '../result.ts'
import {
  allOf,
  assertionFacts,
  byGuarantee,
  countOf,
  earlierTries,
  factsOf,
  inspectionFacts,
  madeBy,
  needsEyes,
  subjectOf,
} from './guarantees.ts'
import type { Report } from './format.ts'
import { oneLine } from './words.ts'

/** Returns lines for people, without colours. */
export const textReport = ({ reported, unusable }: Report): string => {
  const all = reported.map(({ verification }) => verification)
  const not = unusable.map(({ driver, why }) => `--   not tried under ${driver}: ${oneLine(why)}`)
  const end = all.length > 1 ? [...named(all), total(all)] : []
  return `${[...all.flatMap(section), ...not, ...end].join('\n')}\n`
}

/** As many as are named once more at the end */
const mostNamed = 8

/** What did not hold, of whom and why, a line each: where a report is long, its end is what is read. */
const named = (all: readonly Verification[]): readonly string[] => {
  const bad = all.flatMap((verification) =>
    allOf(verification)
      .filter(({ verdict }) => !isGreen(verdict) && verdict !== 'not-applicable')
      .map((each) => {
        const whose = `${subjectOf(verification)} (${madeBy(verification)})`
        return `${mark(each.verdict)} ${oneLine(`${whose}: ${'id' in each ? each.id : each.text}: ${each.observed}`)}`
      }),
  )
  const more = bad.length - mostNamed
  return [...bad.slice(0, mostNamed), ...(more > 0 ? [`     and ${more} more, above`] : [])]
}

const section = (verification: Verification): readonly string[] => {
  const { server, verdict, durationMs, probes, inspections, assertions, enforcedBy } = verification
  const groups = byGuarantee(verification)
  const limits = Object.entries(enforcedBy).map(([limit, by]) => `${limit} ${by}`)
  return [
    `${mark(verdict)} ${oneLine(subjectOf(verification))}: ${counted(probes, 'probe')}, ${server === null ? '' : `${counted(inspections, 'inspection')}, `}${counted(assertions, 'assertion')} (${madeBy(verification)}, ${seconds(durationMs)})`,
    ...notHeld(verification),
    ...earlierTries(verification).map((line) => `     ${oneLine(line)}`),
    `     ${groups.map(({ guarantee, probes: own }) => `${guarantee.group} ${tally(own)}`).join(' · ')}`,
    `     limits held by: ${limits.join(', ')}`,
    ...guards(verification),
    ...groups.flatMap(({ guarantee, probes: own }) => {
      const bad = own.filter(needsEyes)
      return bad.length === 0
        ? []
        : [
            `  ${guarantee.title}: ${guarantee.promise}`,
            ...bad.flatMap((probe) => [
              `    ${mark(probe.verdict)} ${probe.number} ${probe.id}: ${oneLine(probe.protects)}`,
              ...factsOf(probe).map((fact) => `           ${oneLine(fact)}`),
            ]),
          ]
    }),
    ...inspections
      .filter(needsEyes)
      .flatMap((inspection) => [
        `    ${mark(inspection.verdict)} ${inspection.id}: ${oneLine(inspection.protects)}`,
        ...inspectionFacts(inspection).map((fact) => `           ${oneLine(fact)}`),
      ]),
    ...assertions
      .filter(needsEyes)
      .flatMap((assertion) => [
        `    ${mark(assertion.verdict)} ${oneLine(assertion.text)}`,
        ...assertionFacts(assertion).map((fact) => `           ${oneLine(fact)}`),
      ]),
  ]
}

/** After a self-check: every control, with the probes that went red without it; in brackets what was not asked to, with `!` what did not. */
const guards = ({ probes }: Verification): readonly string[] => {
  if (probes.every(({ brokenArm }) => brokenArm === null)) return []
  const shown = ({ number, brokenArm }: Verification['probes'][number]): string =>
    brokenArm === null ? `(${number})` : brokenArm.isRed ? `${number}` : `${number}!`
  const controls = Map.groupBy(probes, ({ control }) => control)
  return [
    '     each control, and the probes that went red without it (in brackets: does not apply, or not tried apart):',
    ...[...controls].map(([control, own]) => `       ${control}: ${own.map(shown).join(' ')}`),
  ]
}

/** What was not held and is no failure, by name: nobody is to take it for held. */
const notHeld = (verification: Verification): readonly string[] => {
  const namesOf = (verdict: Verification['verdict']): readonly string[] => [
    ...verification.probes.flatMap((probe) =>
      probe.verdict === verdict ? [`${probe.number} ${probe.id}`] : [],
    ),
    ...verification.inspections.flatMap((one) => (one.verdict === verdict ? [one.id] : [])),
  ]
  const [absent, open] = [namesOf('not-applicable'), namesOf('not-enforced')]
  return [
    ...(open.length === 0
      ? []
      : [`${mark('not-enforced')} NOT ENFORCED on this machine: ${open.join(', ')}`]),
    ...(absent.length === 0 ? [] : [`     do not apply, ${absent.length}: ${absent.join(', ')}`]),
  ]
}

const total = (all: readonly Verification[]): string => {
  const { failed, errors, notEnforced } = countOf(all.flatMap(allOf))
  const verdict = overall(all)
  if (!isGreen(verdict))
    return `${mark(verdict)} ${failed} failed, ${errors} could not be tried or prove nothing`
  const but = notEnforced === 0 ? '' : `, but for ${notEnforced} NOT ENFORCED`
  return `${mark(verdict)} all ${all.length} hold${but}`
}

const mark = (verdict: Verification['verdict']): string =>
  ({ pass: 'ok  ', 'not-enforced': 'WARN', 'not-applicable': '--  ', fail: 'FAIL', error: 'ERR ' })[verdict]

const counted = (results: Parameters<typeof countOf>[0], what: string): string => {
  const { applicable, passed } = countOf(results)
  return `${passed === applicable ? passed : `${passed} of ${applicable}`} ${what}${applicable === 1 ? '' : 's'} held`
}

const tally = (results: Parameters<typeof countOf>[0]): string => {
  const { applicable, passed } = countOf(results)
  if (applicable === 0) return '–'
  return passed === applicable ? String(passed) : `${passed}/${applicable}!`
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
