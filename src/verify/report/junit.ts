// A report as JUnit XML, the dialect of Ant's task: what other dialects allow beyond it is left out.
import { hostname } from 'node:os'
import type { AssertionResult, Inspection, ProbeResult, Verification } from '../result.ts'
import {
  allOf,
  assertionFacts,
  countOf,
  factsOf,
  inspectionFacts,
  madeBy,
  subjectOf,
  whyNot,
} from './guarantees.ts'
import type { Report } from './format.ts'
import { markup, oneLine } from './words.ts'

/** Returns XML in which a verification is a suite, and a probe or an assertion is a test case. */
export const junitReport = ({ version, reported }: Report): string =>
  [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites>',
    ...reported.flatMap(({ verification }, index) => suite(verification, index, version)),
    '</testsuites>',
    '',
  ].join('\n')

const suite = (verification: Verification, index: number, version: string): readonly string[] => {
  const { host, startedAt, durationMs, probes, inspections, assertions, enforcedBy } = verification
  const { all, failed, errors, notApplicable, notEnforced } = countOf(allOf(verification))
  const name = `sallyport.${subjectOf(verification)}`
  const attributes = {
    id: index,
    package: `sallyport.${madeBy(verification).replace(' ', '.')}`,
    name,
    timestamp: startedAt.slice(0, 'yyyy-mm-ddThh:mm:ss'.length),
    hostname: hostname(),
    tests: all,
    failures: failed,
    errors,
    skipped: notApplicable + notEnforced,
    time: seconds(durationMs),
  }
  const properties = {
    sallyport: version,
    kernel: host.kernel,
    arch: host.arch,
    uid: host.uid,
    ...Object.fromEntries(verification.earlier.map((lacking, at) => [`earlier_try.${at + 1}`, lacking])),
    ...Object.fromEntries(Object.entries(enforcedBy).map(([limit, by]) => [`enforced_by.${limit}`, by])),
  }
  return [
    `  <testsuite${attributesOf(attributes)}>`,
    '    <properties>',
    ...Object.entries(properties).map(
      ([key, value]) => `      <property${attributesOf({ name: key, value })}/>`,
    ),
    '    </properties>',
    ...probes.flatMap((probe) => probeCase(probe, name)),
    ...inspections.flatMap((inspection) => inspectionCase(inspection, name)),
    ...assertions.flatMap((assertion) => assertionCase(assertion, name)),
    '    <system-out/>',
    '    <system-err/>',
    '  </testsuite>',
  ]
}

const probeCase = (probe: ProbeResult, suiteName: string): readonly string[] =>
  testCase(
    {
      classname: `${suiteName}.${probe.group}`,
      name: `${probe.id}: ${probe.protects}`,
      time: seconds(probe.durationMs),
    },
    probe,
    `expected ${probe.expected}, observed ${probe.observed}`,
    factsOf(probe),
  )

const inspectionCase = (inspection: Inspection, suiteName: string): readonly string[] =>
  testCase(
    {
      classname: `${suiteName}.server`,
      name: `${inspection.id}: ${inspection.protects}`,
      time: seconds(0),
    },
    inspection,
    `expected ${inspection.expected}, observed ${inspection.observed}`,
    inspectionFacts(inspection),
  )

const assertionCase = (assertion: AssertionResult, suiteName: string): readonly string[] =>
  testCase(
    { classname: `${suiteName}.assertions`, name: assertion.text, time: seconds(0) },
    assertion,
    `observed ${assertion.observed}`,
    assertionFacts(assertion),
  )

const testCase = (
  attributes: Readonly<Record<string, string>>,
  result: ProbeResult | Inspection | AssertionResult,
  message: string,
  facts: readonly string[],
): readonly string[] => {
  const { verdict } = result
  const skipped = whyNot(result)
  if (skipped !== null)
    return [
      `    <testcase${attributesOf(attributes)}>`,
      `      <skipped${attributesOf({ message: skipped })}/>`,
      '    </testcase>',
    ]
  if (verdict === 'pass') return [`    <testcase${attributesOf(attributes)}/>`]
  const element = verdict === 'fail' ? 'failure' : 'error'
  const type = verdict === 'fail' ? 'guarantee' : 'unproven'
  return [
    `    <testcase${attributesOf(attributes)}>`,
    `      <${element}${attributesOf({ type, message })}>${facts.map(markup).join('\n')}</${element}>`,
    '    </testcase>',
  ]
}

/** Names are tokens: no space at their ends, and none twice. */
const attributesOf = (attributes: Readonly<Record<string, string | number>>): string =>
  Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${markup(oneLine(String(value)).replaceAll(/ +/g, ' ').trim())}"`)
    .join('')

const seconds = (ms: number): string => (ms / 1000).toFixed(3)
