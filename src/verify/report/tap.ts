// A report as TAP 14: a subtest for each verification, a diagnostic for what did not hold.
import type { Verdict, Verification } from '../result.ts'
import { allOf, assertionFacts, factsOf, inspectionFacts, subjectOf } from './guarantees.ts'
import type { Report } from './report.ts'
import { oneLine } from './words.ts'

interface Point {
  readonly verdict: Verdict
  readonly description: string
  readonly facts: readonly string[]
}

/** Returns TAP; a point is `ok` only where the verdict is `pass`. */
export const tapReport = ({ reported }: Report): string => {
  const lines = reported.flatMap(({ verification }, index) => [
    `# Subtest: ${escaped(subjectOf(verification))}`,
    ...points(verification).flatMap(pointLines).map(indented),
    indented(`1..${allOf(verification).length}`),
    `${verification.verdict === 'pass' ? 'ok' : 'not ok'} ${index + 1} - ${escaped(subjectOf(verification))}`,
  ])
  return `${['TAP version 14', `1..${reported.length}`, ...lines].join('\n')}\n`
}

const points = ({ probes, inspections, assertions }: Verification): readonly Point[] => [
  ...probes.map((probe) => ({
    verdict: probe.verdict,
    description: `${probe.id}: ${probe.protects}`,
    facts: factsOf(probe),
  })),
  ...inspections.map((inspection) => ({
    verdict: inspection.verdict,
    description: `${inspection.id}: ${inspection.protects}`,
    facts: inspectionFacts(inspection),
  })),
  ...assertions.map((assertion) => ({
    verdict: assertion.verdict,
    description: assertion.text,
    facts: assertionFacts(assertion),
  })),
]

/** JSON strings are YAML strings, so nothing in them ends the diagnostic. */
const pointLines = ({ verdict, description, facts }: Point, index: number): readonly string[] => {
  const point = `${verdict === 'pass' ? 'ok' : 'not ok'} ${index + 1} - ${escaped(description)}`
  if (verdict === 'pass') return [point]
  const list = facts.map((fact) => `    - ${JSON.stringify(oneLine(fact))}`)
  return [point, '  ---', `  severity: ${verdict}`, '  facts:', ...list, '  ...']
}

const indented = (line: string): string => `    ${line}`

/** A `#` would begin a directive: `# SKIP` turns a failure into a pass. */
const escaped = (text: string): string => oneLine(text).replaceAll('\\', '\\\\').replaceAll('#', '\\#')
