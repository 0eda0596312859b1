// The broken arms: the sandbox of the same launch with one control taken out, in which its probes must go red.
import { SallyportError } from '../../errors.ts'
import { armOf } from './arm.ts'
import type { Answer } from '../attempt.ts'
import { type ControlId } from './controls.ts'
import { type ArmFinding, needsControl } from '../judge.ts'
import type { Lab } from '../lab/lab.ts'
import { type Alter, tryInside } from '../lab/try.ts'
import { aloneInside, type Planned } from '../lab/inside.ts'
import { type Listeners, startNeighbour } from '../lab/neighbour.ts'
import { withoutControlMs } from '../lab/patience.ts'
import type { Probe } from '../probe.ts'
import type { Exposure } from '../lab/removal.ts'

/** Which probes need an arm: all in a self-check, else those that were open nowhere outside. */
export interface ArmChoice {
  readonly outside: ReadonlyMap<Probe, readonly Answer[]>
  readonly selfCheck: boolean
  /** What listens in the other sandbox, which is without the control too where the control is between the two */
  readonly listeners: Listeners
}

/** Tries each control's arm once for all probes of it that need one. */
export const tryArms = async (
  lab: Lab,
  exposure: Exposure,
  planned: readonly Planned[],
  choice: ArmChoice,
): Promise<Map<Probe, ArmFinding>> => {
  const needed = planned.filter(
    (it) =>
      needsControl(it.trial) &&
      ((choice.selfCheck && it.trial.isHeldBeside !== true) || !isOpenOutside(it, choice)),
  )
  const found = new Map<Probe, ArmFinding>()
  for (const [control, its] of Map.groupBy(needed, ({ probe }) => probe.control))
    await tryArm(lab, control, { exposure, listeners: choice.listeners }, its, found)
  return found
}

const isOpenOutside = ({ probe, trial }: Planned, { outside }: ArmChoice): boolean => {
  const answers = outside.get(probe) ?? []
  return (trial.outside ?? trial.attempts).some((attempt, index) => {
    const answer = answers[index]
    return answer !== undefined && attempt.meaning(answer).is === 'open'
  })
}

/** How a sandbox does not come up: by itself, or since this machine cannot hold what it takes. */
const refusals: ReadonlySet<string> = new Set(['ERR_SANDBOX_SETUP', 'ERR_SANDBOX_UNENFORCEABLE'])

const tryArm = async (
  whole: Lab,
  control: ControlId,
  { exposure, listeners }: { readonly exposure: Exposure; readonly listeners: Listeners },
  planned: readonly Planned[],
  found: Map<Probe, ArmFinding>,
): Promise<void> => {
  const arm = armOf(control, whole.server.driver)
  const lab = { ...arm.around(whole), patienceMs: withoutControlMs }
  const alter: Alter = (plan) => arm.alter(plan, exposure)
  const together = planned.filter(({ probe }) => probe.isAlone !== true)
  const run = async (its: readonly Planned[], make: () => Promise<readonly Answer[]>): Promise<void> => {
    try {
      const answers = await make()
      let at = 0
      for (const { probe, trial } of its)
        found.set(probe, { answers: answers.slice(at, (at += trial.attempts.length)) })
    } catch (error) {
      if (!(error instanceof SallyportError) || !refusals.has(error.code)) throw error
      for (const { probe } of its) found.set(probe, { refused: error.message })
    }
  }
  if (together.length > 0)
    await run(together, async () => {
      const attempts = together.flatMap(({ trial }) => trial.attempts)
      await using _ = control === 'net-namespace' ? await startNeighbour(lab, listeners, alter) : null
      return (await tryInside(lab, attempts, alter)).answers
    })
  for (const it of planned.filter(({ probe }) => probe.isAlone === true))
    await run([it], () => aloneInside(lab, it, exposure, alter))
}
