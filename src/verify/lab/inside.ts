// The battery's own runs: all probes in one sandbox, those that take everything in one each, and all of them outside.
import type { Answer } from '../attempt.ts'
import { SallyportError } from '../../errors.ts'
import type { Lab } from './lab.ts'
import { type Alter, tryInside, tryOutside } from './try.ts'
import { tryPlans } from './planned.ts'
import type { Probe, Trial } from '../probe.ts'
import type { Exposure } from './removal.ts'

/** A probe with what it tries here. */
export interface Planned {
  readonly probe: Probe
  readonly trial: Trial
}

/** Answers of one run, given back to the probes whose attempts they were. */
const shared = (
  planned: readonly Planned[],
  answers: readonly Answer[],
  of: (trial: Trial) => number,
): Map<Probe, readonly Answer[]> => {
  const each = new Map<Probe, readonly Answer[]>()
  let at = 0
  for (const { probe, trial } of planned) each.set(probe, answers.slice(at, (at += of(trial))))
  return each
}

/** Makes every attempt inside. */
export const answersInside = async (
  lab: Lab,
  planned: readonly Planned[],
  exposure: Exposure,
): Promise<Map<Probe, readonly Answer[]>> => {
  const together = planned.filter(({ probe }) => probe.isAlone !== true)
  const { answers } = await tryInside(
    lab,
    together.flatMap(({ trial }) => trial.attempts),
  )
  const all = shared(together, answers, ({ attempts }) => attempts.length)
  for (const { probe, trial } of planned.filter(({ probe }) => probe.isAlone === true))
    all.set(probe, await aloneInside(lab, { probe, trial }, exposure))
  return all
}

/** A launch that is ended for want of memory has no answer but that, nor has one that must be refused at its gate. */
export const aloneInside = async (
  lab: Lab,
  { probe: { provoke, provokeContainer, within, endsBy }, trial: { attempts } }: Planned,
  exposure: Exposure,
  alter: Alter = (plan) => plan,
): Promise<readonly Answer[]> => {
  if (attempts.length === 0) return []
  if (attempts.some(({ plan }) => plan !== undefined)) return tryPlans(within?.(lab) ?? lab, attempts)
  const { answers, exit } = await tryInside(within?.(lab) ?? lab, attempts, (plan) =>
    alter(
      plan.driver === 'bubblewrap'
        ? { ...plan, ...provoke?.(plan, exposure) }
        : { ...plan, ...provokeContainer?.(plan, exposure) },
    ),
  ).catch((error: unknown) => {
    if (endsBy !== 'refused' || !isRefusal(error)) throw error
    return { answers: [{ outcome: 'refused', text: error.message, ms: 0 }], exit: null }
  })
  if (endsBy === 'end' && answers.length === 0) return [{ outcome: 'ended', text: '', ms: 0 }]
  return exit?.reason === 'oom' ? [{ outcome: 'oom', text: '', ms: 0 }] : answers
}

/** Before anything was built, by the launcher, or at the gate: whatever else keeps a sandbox from coming up is no refusal. */
const isRefusal = (error: unknown): error is SallyportError =>
  error instanceof SallyportError &&
  (error.code === 'ERR_MOUNT_REFUSED' ||
    error.code === 'ERR_CONFIG_INVALID' ||
    (error.code === 'ERR_SANDBOX_SETUP' && ['confine', 'gate'].includes(String(error.details['step']))))

/** Makes every attempt outside, or what stands for it there. */
export const answersOutside = async (
  lab: Lab,
  planned: readonly Planned[],
): Promise<Map<Probe, readonly Answer[]>> => {
  const { answers } = await tryOutside(
    lab,
    planned.flatMap(({ trial }) => trial.outside ?? trial.attempts),
  )
  return shared(planned, answers, ({ outside, attempts }) => (outside ?? attempts).length)
}
