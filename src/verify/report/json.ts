// A report for programs; src/schema/verify.schema.json is its shape.
import { visibleJson } from '../../lib/visible-json.ts'
import {
  overall,
  type AssertionResult,
  type Inspection,
  type ProbeResult,
  type Verification,
} from '../result.ts'
import { allOf, countOf } from './guarantees.ts'
import type { Report } from './format.ts'

/** Returns one JSON document. */
export const jsonReport = ({ version, reported, unusable }: Report): string => {
  const all = reported.map(({ verification }) => verification)
  const document = {
    $schema: 'https://unpkg.com/sallyport/dist/schema/verify.schema.json',
    version: 1,
    sallyport: version,
    verdict: overall(all),
    counts: countsOf(all.flatMap(allOf)),
    unusable_drivers: unusable,
    verifications: all.map(verificationOf),
  }
  return `${visibleJson(document, 2)}\n`
}

const countsOf = (results: Parameters<typeof countOf>[0]): object => {
  const { passed, failed, errors, notApplicable, notEnforced } = countOf(results)
  return {
    pass: passed,
    fail: failed,
    error: errors,
    not_applicable: notApplicable,
    not_enforced: notEnforced,
  }
}

const verificationOf = (verification: Verification): object => ({
  profile: verification.profile,
  server: verification.server,
  driver: verification.driver,
  runtime: verification.runtime,
  host: verification.host,
  started_at: verification.startedAt,
  duration_ms: verification.durationMs,
  earlier_tries: verification.earlier,
  verdict: verification.verdict,
  counts: countsOf(allOf(verification)),
  enforced_by: verification.enforcedBy,
  probes: verification.probes.map(probeOf),
  inspections: verification.inspections.map(inspectionOf),
  assertions: verification.assertions.map(assertionOf),
})

const probeOf = ({ positiveControl, brokenArm, durationMs, ...probe }: ProbeResult): object => ({
  ...probe,
  positive_control:
    positiveControl === null ? null : { observed: positiveControl.observed, is_open: positiveControl.isOpen },
  broken_arm:
    brokenArm === null
      ? null
      : { control: brokenArm.control, observed: brokenArm.observed, is_red: brokenArm.isRed },
  duration_ms: durationMs,
})

const inspectionOf = ({ id, protects, expected, observed, verdict, evidence }: Inspection): object => ({
  id,
  protects,
  expected,
  observed,
  verdict,
  evidence,
})

const assertionOf = ({ text, reason, file, line, verdict, observed, evidence }: AssertionResult): object => ({
  text,
  reason,
  file,
  line,
  verdict,
  observed,
  evidence,
})
