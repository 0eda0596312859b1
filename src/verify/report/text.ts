// A report for people: one line for a profile that holds, and everything about what does not.
import { overall, type Verification } from '../result.ts'
import {
  allOf,
  assertionFacts,
  byGuarantee,
  countOf,
  factsOf,
  inspectionFacts,
  madeBy,
  subjectOf,
} from './guarantees.ts'
import type { Report } from './report.ts'
import { oneLine } from './words.ts'

/** Returns lines for people, without colours. */
export const textReport = ({ reported, unusable }: Report): string => {
  const all = reported.map(({ verification }) => verification)
  const not = unusable.map(({ driver, why }) => `--   not tried under ${driver}: ${oneLine(why)}`)
  return `${[...all.flatMap(section), ...not, ...(all.length > 1 ? [total(all)] : [])].join('\n')}\n`
}

const section = (verification: Verification): readonly string[] => {
  const { server, verdict, durationMs, probes, inspections, assertions, enforcedBy } = verification
  const groups = byGuarantee(verification)
  const limits = Object.entries(enforcedBy).map(([limit, by]) => `${limit} ${by}`)
  return [
    `${mark(verdict)} ${oneLine(subjectOf(verification))}: ${counted(probes, 'probe')}, ${server === null ? '' : `${counted(inspections, 'inspection')}, `}${counted(assertions, 'assertion')} (${madeBy(verification)}, ${seconds(durationMs)})`,
    `     ${groups.map(({ guarantee, probes: own }) => `${guarantee.group} ${tally(own)}`).join(' · ')}`,
    `     limits held by: ${limits.join(', ')}`,
    ...groups.flatMap(({ guarantee, probes: own }) => {
      const bad = own.filter((probe) => probe.verdict !== 'pass')
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
      .filter((inspection) => inspection.verdict !== 'pass')
      .flatMap((inspection) => [
        `    ${mark(inspection.verdict)} ${inspection.id}: ${oneLine(inspection.protects)}`,
        ...inspectionFacts(inspection).map((fact) => `           ${oneLine(fact)}`),
      ]),
    ...assertions
      .filter((assertion) => assertion.verdict !== 'pass')
      .flatMap((assertion) => [
        `    ${mark(assertion.verdict)} ${oneLine(assertion.text)}`,
        ...assertionFacts(assertion).map((fact) => `           ${oneLine(fact)}`),
      ]),
  ]
}

const total = (all: readonly Verification[]): string => {
  const { failed, errors } = countOf(all.flatMap(allOf))
  const verdict = overall(all)
  return verdict === 'pass'
    ? `${mark(verdict)} all ${all.length} hold`
    : `${mark(verdict)} ${failed} failed, ${errors} could not be tried or prove nothing`
}

const mark = (verdict: Verification['verdict']): string =>
  ({ pass: 'ok  ', fail: 'FAIL', error: 'ERR ' })[verdict]

const counted = (results: Parameters<typeof countOf>[0], what: string): string => {
  const { all, passed } = countOf(results)
  return `${passed === all ? all : `${passed} of ${all}`} ${what}${all === 1 ? '' : 's'}`
}

const tally = (results: Parameters<typeof countOf>[0]): string => {
  const { all, passed } = countOf(results)
  return passed === all ? String(all) : `${passed}/${all}!`
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
