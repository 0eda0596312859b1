// A report as TAP 14: a subtest for each verification, a diagnostic for what did not hold.
import { isGreen, type Verdict, type Verification } from '../result.ts'
import {
  allOf,
  assertionFacts,
  earlierTries,
  factsOf,
  inspectionFacts,
  subjectOf,
  whyNot,
} from './guarantees.ts'
import type { Report } from './format.ts'
import { oneLine } from './words.ts'

interface Point {
  readonly verdict: Verdict
  readonly description: string
  readonly facts: readonly string[]
  /** Why it is skipped, or null */
  readonly skipped: string | null
}

/** Returns TAP. A point is `ok` where the verdict is `pass`, and with the directive `SKIP` where nothing is to be mended in it. */
export const tapReport = ({ reported }: Report): string => {
  const lines = reported.flatMap(({ verification }, index) => [
    `# Subtest: ${escaped(subjectOf(verification))}`,
    ...earlierTries(verification).map((line) => indented(`# ${escaped(line)}`)),
    ...points(verification).flatMap(pointLines).map(indented),
    indented(`1..${allOf(verification).length}`),
    `${isGreen(verification.verdict) ? 'ok' : 'not ok'} ${index + 1} - ${escaped(subjectOf(verification))}`,
  ])
  return `${['TAP version 14', `1..${reported.length}`, ...lines].join('\n')}\n`
}

const points = ({ probes, inspections, assertions }: Verification): readonly Point[] => [
  ...probes.map((probe) => ({
    verdict: probe.verdict,
    description: `${probe.id}: ${probe.protects}`,
    facts: factsOf(probe),
    skipped: whyNot(probe),
  })),
  ...inspections.map((inspection) => ({
    verdict: inspection.verdict,
    description: `${inspection.id}: ${inspection.protects}`,
    facts: inspectionFacts(inspection),
    skipped: whyNot(inspection),
  })),
  ...assertions.map((assertion) => ({
    verdict: assertion.verdict,
    description: assertion.text,
    facts: assertionFacts(assertion),
    skipped: whyNot(assertion),
  })),
]

/** JSON strings are YAML strings, so nothing in them ends the diagnostic. */
const pointLines = ({ verdict, description, facts, skipped }: Point, index: number): readonly string[] => {
  const isOk = verdict === 'pass' || skipped !== null
  const point = `${isOk ? 'ok' : 'not ok'} ${index + 1} - ${escaped(description)}`
  if (skipped !== null) return [`${point} # SKIP ${escaped(skipped)}`]
  if (isOk) return [point]
  const list = facts.map((fact) => `    - ${JSON.stringify(oneLine(fact))}`)
  return [point, '  ---', `  severity: ${verdict}`, '  facts:', ...list, '  ...']
}

const indented = (line: string): string => `    ${line}`

/** A `#` would begin a directive: `# SKIP` turns a failure into a pass. */
const escaped = (text: string): string => oneLine(text).replaceAll('\\', '\\\\').replaceAll('#', '\\#')
