// From answers to a verdict: what was expected, what was seen, and whether what was seen proves anything.
import type { LaunchPlan } from '../sandbox/launch.ts'
import type { SandboxSpec } from '../sandbox/spec.ts'
import { armOf } from './arms/arm.ts'
import type { Answer, Attempt, Meaning } from './attempt.ts'
import { controlOf } from './arms/controls.ts'
import type { Probe, Trial } from './probe.ts'
import type { BrokenArm, PositiveControl, ProbeResult, Verdict } from './result.ts'

/** One probe in one scene, with what came of it in each place. */
export interface Findings {
  readonly probe: Probe
  readonly trial: Trial
  readonly inside: readonly Answer[]
  /** Answers to `outside`, or to the attempts where a trial has no others for outside */
  readonly outside: readonly Answer[]
  /** Null where the arm was not tried */
  readonly arm: ArmFinding | null
  /** Whether the arm was tried for its own sake, or only for want of a control that is open outside */
  readonly isSelfCheck: boolean
  /** Whether what nothing here holds is a failure, whatever the profile asks for */
  readonly isStrict: boolean
  readonly spec: Pick<SandboxSpec, 'network'>
  readonly driver: LaunchPlan['driver']
}

/** What became of the sandbox without the control: its answers, or why it did not come up. */
export type ArmFinding = { readonly answers: readonly Answer[] } | { readonly refused: string }

const missing: Answer = { outcome: 'unknown', text: 'no answer', ms: 0 }

const meanings = (attempts: readonly Attempt[], answers: readonly Answer[]): readonly Meaning[] =>
  attempts.map((attempt, index) => attempt.meaning(answers[index] ?? missing))

/** Returns the result of one probe. Pure. */
export const judge = (findings: Findings): ProbeResult => {
  const { probe, trial, inside, outside } = findings
  const { id, number, group, protects, control } = probe
  const seen = meanings(trial.attempts, inside)
  const bare = meanings(trial.outside ?? trial.attempts, outside)
  const isProven = needsControl(trial)
  const positiveControl = isProven ? positive(findings, bare) : null
  const brokenArm = isProven ? broken(findings) : null
  const [verdict, why] = decide(findings, seen, positiveControl, brokenArm)
  const errnos = new Set(seen.flatMap(({ errno }) => errno ?? []))
  const [errno = null] = errnos
  const notes = [why, trial.note].filter((note) => note !== undefined && note !== null)
  return {
    id,
    number,
    group,
    protects,
    control,
    expected: trial.expected,
    observed:
      verdict === 'not-applicable' && seen.length === 0 ? 'nothing of the kind' : observed(trial, seen),
    errno,
    layer: verdict === 'pass' ? (trial.layer ?? controlOf(control).layer) : null,
    verdict,
    detail: notes.length === 0 ? null : notes.join('; '),
    evidence: trial.attempts.map((attempt, index) => {
      const there = trial.outside === undefined ? bare[index] : undefined
      const line = `${attempt.label}: ${seen[index]?.observed ?? 'no answer'}`
      return there === undefined ? line : `${line}; outside: ${there.observed}`
    }),
    positiveControl,
    brokenArm,
    durationMs: inside.slice(0, trial.attempts.length).reduce((sum, { ms }) => sum + ms, 0),
  }
}

/** Whether a verdict on it rests on its being open elsewhere: what means nothing here, or what nothing holds, proves nothing. */
export const needsControl = ({ inapplicable, unenforced }: Trial): boolean =>
  inapplicable === undefined && unenforced === undefined

const observed = ({ attempts, note }: Trial, seen: readonly Meaning[]): string => {
  const bad = seen.findIndex(({ is }) => is !== 'shut')
  const held = note === undefined ? '' : ` (${note})`
  if (bad >= 0) return `${attempts[bad]?.label}: ${seen[bad]?.observed}${held}`
  return `${[...new Set(seen.map((meaning) => meaning.observed))].join(', ')}${held}`
}

const positive = ({ trial, arm, probe }: Findings, bare: readonly Meaning[]): PositiveControl => {
  const tried = trial.outside ?? trial.attempts
  const open = bare.flatMap(({ is, observed }, index) =>
    is === 'open' ? [`${tried[index]?.label}: ${observed}`] : [],
  )
  if (open[0] !== undefined)
    return { observed: `outside, ${open.length} of ${tried.length} open: ${open[0]}`, isOpen: true }
  const shut = `outside: ${bare[0]?.observed ?? 'nothing was tried'}`
  if (arm === null) return { observed: shut, isOpen: false }
  const there = `in the sandbox without ${probe.control}`
  if ('refused' in arm) return { observed: `${shut}; ${there}: refused: ${arm.refused}`, isOpen: false }
  const without = meanings(trial.attempts, arm.answers)
  const at = without.findIndex(({ is }) => is === 'open')
  if (at >= 0) {
    const found = `${trial.attempts[at]?.label}: ${without[at]?.observed}`
    return { observed: `${there}: ${found}`, isOpen: true }
  }
  return { observed: `${shut}; ${there}: ${without[0]?.observed ?? 'nothing was tried'}`, isOpen: false }
}

/** Whether what did not come without the control had come with it in less than half of the time that was waited for it. */
const wasSooner = (held: Answer | undefined, without: Answer | undefined): boolean =>
  held !== undefined && without !== undefined && held.outcome !== 'late' && held.ms * 2 < without.ms

const broken = ({ probe, trial, inside, arm, isSelfCheck, spec, driver }: Findings): BrokenArm | null => {
  if (!isSelfCheck || arm === null || trial.isHeldBeside === true) return null
  const { control } = probe
  const refusal = armOf(control, driver).refusal(spec)
  if ('refused' in arm)
    return { control, observed: `refused: ${arm.refused}`, isRed: refusal?.test(arm.refused) === true }
  const seen = meanings(trial.attempts, arm.answers)
  const at = seen.findIndex(
    (meaning, index) =>
      meaning.is === 'open' ||
      meaning.is === 'otherwise' ||
      (meaning.is === 'broken' && meaning.isLate === true && wasSooner(inside[index], arm.answers[index])),
  )
  const isRed = at >= 0 && refusal === null
  const observed = at < 0 ? 'as with it' : `${trial.attempts[at]?.label}: ${seen[at]?.observed}`
  return { control, observed, isRed }
}

const decide = (
  { trial, arm, isStrict }: Findings,
  seen: readonly Meaning[],
  positiveControl: PositiveControl | null,
  brokenArm: BrokenArm | null,
): readonly [Verdict, string | null] => {
  const { inapplicable, unenforced } = trial
  if (seen.length === 0 && inapplicable === undefined) return ['error', 'there was nothing to try']
  const isBroken = seen.some(({ is }) => is === 'broken')
  if (unenforced !== undefined)
    return isBroken ? ['error', 'it could not be tried'] : [isStrict ? 'fail' : 'not-enforced', unenforced]
  if (seen.some(({ is }) => is === 'open' || is === 'otherwise')) {
    const isOpen = seen.some(({ is }) => is === 'open')
    return ['fail', isOpen ? null : 'shut, and not as expected']
  }
  if (isBroken) return ['error', 'it could not be tried']
  if (inapplicable !== undefined)
    return ['not-applicable', `${inapplicable.because}; it applies ${inapplicable.where}`]
  if (positiveControl?.isOpen !== true)
    return ['error', 'it was seen open nowhere, so that it is shut here proves nothing']
  if (brokenArm?.isRed === false && arm !== null && 'refused' in arm)
    return ['error', `without ${brokenArm.control} there was no sandbox to try it in: ${arm.refused}`]
  if (brokenArm?.isRed === false)
    return ['error', `it stayed green without ${brokenArm.control}: it does not guard it`]
  return ['pass', null]
}
