// A report as SARIF 2.1.0: a rule for each probe and assertion, a result for what did not hold, at the profile's line.
import { isAbsolute, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { visibleJson } from '../../lib/visible-json.ts'
import type { AssertionResult, Inspection, ProbeResult, Verdict, Verification } from '../result.ts'
import {
  assertionFacts,
  factsOf,
  guarantees,
  inspectionFacts,
  madeBy,
  needsEyes,
  subjectOf,
  whyNot,
} from './guarantees.ts'
import type { Place, Report, Reported } from './format.ts'
import { oneLine } from './words.ts'

const assertionRule = 'assertion'

/**
 * Returns one SARIF log with one run. What holds is a rule without a result, and what does not apply a notification of the run:
 * many readers, GitHub's among them, show every result as a finding, whatever its kind. What is not enforced is to be reviewed.
 */
export const sarifReport = ({ version, folder, reported }: Report): string => {
  const rules = rulesOf(reported.map(({ verification }) => verification))
  const indexOf = new Map(rules.map(({ id }, index) => [id, index]))
  const locate = (place: Place): object => locationOf(place, folder)
  const results = reported.flatMap((each) => resultsOf(each, indexOf, locate))
  const log = {
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'sallyport verify', version, rules } },
        originalUriBaseIds: { SRCROOT: { uri: folderUri(folder) } },
        columnKind: 'utf16CodeUnits',
        invocations: [
          {
            executionSuccessful: reported.every(({ verification }) => verification.verdict !== 'error'),
            toolExecutionNotifications: reported.flatMap((each) => absences(each, indexOf)),
            ...spanOf(reported.map(({ verification }) => verification)),
          },
        ],
        results,
      },
    ],
  }
  return `${visibleJson(log, 2)}\n`
}

const rulesOf = (all: readonly Verification[]): readonly { readonly id: string }[] => {
  const probes = new Map(all.flatMap(({ probes: each }) => each.map((probe) => [probe.id, probe] as const)))
  const own = [...probes.values()].map((probe) => ({
    ...ruleOf(
      probe.id,
      oneLine(probe.protects),
      guarantees.find(({ group }) => group === probe.group)?.promise ?? oneLine(probe.protects),
      `Probe ${probe.number} tries it in the sandbox. The control that stops it is ${probe.control}: docs/verify.md says what that is.`,
    ),
    properties: { number: probe.number, control: probe.control, tags: ['security', probe.group] },
  }))
  const stated = {
    ...ruleOf(
      assertionRule,
      'What a profile or a test file states holds.',
      'Each line that a profile or a test file states was tried in the sandbox, or decided by the rules.',
      'The line is where the result points. Narrow what the profile grants, or state what is meant.',
    ),
    properties: { tags: ['security', 'assertions'] },
  }
  const inspections = new Map(
    all.flatMap(({ inspections: each }) => each.map((one) => [one.id, one] as const)),
  )
  const seen = [...inspections.values()].map(({ id, protects }) => ({
    ...ruleOf(
      id,
      oneLine(protects),
      'The server itself ran, and its processes were looked at from outside.',
      `\`sallyport test\` runs the same server step by step, and says what it writes to stderr.`,
    ),
    properties: { tags: ['security', 'server'] },
  }))
  const isStated = all.some(({ assertions }) => assertions.length > 0)
  return [...own, ...seen, ...(isStated ? [stated] : [])]
}

/** With every text that code scanning asks for. */
const ruleOf = (id: string, short: string, full: string, help: string) => ({
  id,
  // Never the id in other letters, which readers take for a mistake.
  name: ['rule', ...id.split(/[.-]/)].map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(''),
  shortDescription: { text: short },
  fullDescription: { text: full },
  help: { text: help },
  defaultConfiguration: { level: 'error' },
})

const resultsOf = (
  { verification, placeOf }: Reported,
  indexOf: ReadonlyMap<string, number>,
  locate: (place: Place) => object,
): readonly object[] => {
  const subject = subjectOf(verification)
  const result = (rule: string, name: string, verdict: Verdict, message: string, place: Place): object => ({
    ruleId: rule,
    ruleIndex: indexOf.get(rule),
    ...(verdict === 'not-enforced' ? { kind: 'review', level: 'none' } : { kind: 'fail', level: 'error' }),
    message: { text: oneLine(message) },
    locations: [locate(place)],
    partialFingerprints: { 'sallyport/v1': `${madeBy(verification)}/${subject}/${name}` },
    properties: { profile: verification.profile, server: verification.server, verdict },
  })
  return [
    ...verification.probes
      .filter(needsEyes)
      .map((probe) =>
        result(probe.id, probe.id, probe.verdict, probeMessage(probe, subject), placeOf(keyOf(probe))),
      ),
    ...verification.inspections
      .filter(needsEyes)
      .map((one) => result(one.id, one.id, one.verdict, inspectionMessage(one, subject), placeOf('server'))),
    ...verification.assertions.filter(needsEyes).map((assertion) =>
      result(assertionRule, assertion.text, assertion.verdict, assertionMessage(assertion, subject), {
        path: assertion.file,
        line: assertion.line,
      }),
    ),
  ]
}

const absences = ({ verification }: Reported, indexOf: ReadonlyMap<string, number>): readonly object[] =>
  [...verification.probes, ...verification.inspections]
    .filter(({ verdict }) => verdict === 'not-applicable')
    .map((one) => ({
      level: 'note',
      message: { text: oneLine(`${subjectOf(verification)}: ${one.id} ${whyNot(one)}`) },
      associatedRule: { id: one.id, index: indexOf.get(one.id) },
    }))

const words: Partial<Record<Verdict, string>> = { fail: 'does not hold', 'not-enforced': 'is not enforced' }

const wordOf = (verdict: Verdict): string => words[verdict] ?? 'could not be shown'

const probeMessage = (probe: ProbeResult, subject: string): string =>
  `${subject}: ${wordOf(probe.verdict)}: ${probe.protects} ${factsOf(probe).join('; ')}`

const inspectionMessage = (inspection: Inspection, subject: string): string =>
  `${subject}: ${wordOf(inspection.verdict)}: ${inspection.protects} ${inspectionFacts(inspection).join('; ')}`

const assertionMessage = (assertion: AssertionResult, subject: string): string =>
  `${subject}: ${wordOf(assertion.verdict)}: ${assertion.text}. ${assertionFacts(assertion).join('; ')}`

const keyOf = ({ group }: ProbeResult): string =>
  guarantees.find((guarantee) => guarantee.group === group)?.key ?? 'name'

const locationOf = ({ path, line }: Place, folder: string): object => ({
  physicalLocation: { artifactLocation: artifactOf(path, folder), region: { startLine: line } },
})

/** Relative where the file lies in the folder, which is what code scanning of a repository takes. */
const artifactOf = (path: string, folder: string): object => {
  const within = relative(folder, path)
  const isOutside = within === '' || within.startsWith('..') || isAbsolute(within)
  if (isOutside) return { uri: pathToFileURL(path).href }
  const base = folderUri(folder)
  return { uri: pathToFileURL(path).href.slice(base.length), uriBaseId: 'SRCROOT' }
}

const folderUri = (folder: string): string => {
  const { href } = pathToFileURL(folder)
  return href.endsWith('/') ? href : `${href}/`
}

const spanOf = (all: readonly Verification[]): object => {
  const starts = all.map(({ startedAt }) => Date.parse(startedAt))
  const ends = all.map(({ startedAt, durationMs }) => Date.parse(startedAt) + durationMs)
  if (starts.length === 0) return {}
  return {
    startTimeUtc: new Date(Math.min(...starts)).toISOString(),
    endTimeUtc: new Date(Math.max(...ends)).toISOString(),
  }
}
