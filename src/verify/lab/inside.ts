// The battery's own runs: all probes in one sandbox, those that are alone in one each beside it, and all of them outside.
import type { Answer } from '../attempt.ts'
import { SallyportError } from '../../errors.ts'
import { inLanes } from '../../lib/lanes.ts'
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

/** What is tried in one sandbox: all probes that share it, or the one that has it to itself. */
export type Launch = readonly [Planned, ...(readonly Planned[])]

/** Launches beside each other: most of what each does is to wait, and more of them would wait for the machine. */
const atOnce = 4

/** Returns the launches in which these are tried. */
export const launchesOf = (planned: readonly Planned[]): readonly Launch[] => {
  const [first, ...others] = planned.filter(({ probe }) => probe.isAlone !== true)
  const alone = planned.filter(({ probe }) => probe.isAlone === true)
  return [...(first === undefined ? [] : [[first, ...others] as const]), ...alone.map((it) => [it] as const)]
}

/** Makes the launches beside each other, and when nothing else goes on those that are to be apart, one after another. */
export const inLaunches = async <T extends { readonly launch: Launch }>(
  all: readonly T[],
  make: (it: T) => Promise<unknown>,
): Promise<void> => {
  const isApart = ({ launch }: T): boolean => launch.some(({ probe }) => probe.isApart === true)
  await inLanes(
    all.filter((it) => !isApart(it)),
    atOnce,
    make,
  )
  await inLanes(all.filter(isApart), 1, make)
}

/** Answers of one run, given back to the probes whose attempts they were. */
export const shared = (
  planned: readonly Planned[],
  answers: readonly Answer[],
  of: (trial: Trial) => number = ({ attempts }) => attempts.length,
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
  const all = new Map<Probe, readonly Answer[]>()
  await inLaunches(
    launchesOf(planned).map((launch) => ({ launch })),
    async ({ launch }) => {
      const answers = await answersOfLaunch(lab, launch, exposure)
      for (const [probe, own] of shared(launch, answers)) all.set(probe, own)
    },
  )
  return all
}

/** Makes the attempts of one launch, in their order. */
export const answersOfLaunch = async (
  lab: Lab,
  launch: Launch,
  exposure: Exposure,
  alter?: Alter,
): Promise<readonly Answer[]> => {
  const [first] = launch
  if (first.probe.isAlone === true) return aloneInside(lab, first, exposure, alter)
  const attempts = launch.flatMap(({ trial }) => trial.attempts)
  return (await tryInside(lab, attempts, alter)).answers
}

/** A launch that is ended for want of memory has no answer but that, nor has one that must be refused at its gate. */
const aloneInside = async (
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
