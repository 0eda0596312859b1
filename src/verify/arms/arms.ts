// The broken arms: the sandbox of the same launch with one control taken out, in which its probes must go red.
import { SallyportError } from '../../errors.ts'
import { armOf } from './arm.ts'
import type { Answer } from '../attempt.ts'
import { type ControlId } from './controls.ts'
import { type ArmFinding, needsControl } from '../judge.ts'
import type { Lab } from '../lab/lab.ts'
import { answersOfLaunch, inLaunches, type Launch, launchesOf, type Planned, shared } from '../lab/inside.ts'
import { type Listeners, startNeighbour } from '../lab/neighbour.ts'
import { withoutControlMs } from '../lab/patience.ts'
import type { Probe } from '../probe.ts'
import type { Exposure } from '../lab/removal.ts'
import type { Alter } from '../lab/try.ts'

/** Which probes need an arm: all in a self-check, else those that were open nowhere outside. */
export interface ArmChoice {
  readonly inside: ReadonlyMap<Probe, readonly Answer[]>
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
  const launches = [...Map.groupBy(needed, ({ probe }) => probe.control)].flatMap(([control, its]) =>
    launchesOf(its).map((launch): ArmLaunch => ({ control, launch })),
  )
  await inLaunches(launches, async (it) => {
    const patienceMs = withoutControlMs(heldMs(it.launch, choice))
    const findings = await tryArm({ ...lab, patienceMs }, it, { exposure, listeners: choice.listeners })
    for (const [probe, finding] of findings) found.set(probe, finding)
  })
  return found
}

/** How long what is looked at from outside took to come with the control, ms. */
const heldMs = (launch: Launch, { inside }: ArmChoice): number =>
  Math.max(
    0,
    ...launch.flatMap(({ probe, trial }) =>
      trial.attempts.map(({ watch }, index) => (watch && inside.get(probe)?.[index]?.ms) ?? 0),
    ),
  )

const isOpenOutside = ({ probe, trial }: Planned, { outside }: ArmChoice): boolean => {
  const answers = outside.get(probe) ?? []
  return (trial.outside ?? trial.attempts).some((attempt, index) => {
    const answer = answers[index]
    return answer !== undefined && attempt.meaning(answer).is === 'open'
  })
}

/** How a sandbox does not come up: by itself, or since this machine cannot hold what it takes. */
const refusals: ReadonlySet<string> = new Set(['ERR_SANDBOX_SETUP', 'ERR_SANDBOX_UNENFORCEABLE'])

/** A launch without a control. */
interface ArmLaunch {
  readonly control: ControlId
  readonly launch: Launch
}

const tryArm = async (
  whole: Lab,
  { control, launch }: ArmLaunch,
  { exposure, listeners }: { readonly exposure: Exposure; readonly listeners: Listeners },
): Promise<ReadonlyMap<Probe, ArmFinding>> => {
  const arm = armOf(control, whole.server.driver)
  const lab = arm.around(whole)
  const alter: Alter = (plan) => arm.alter(plan, exposure)
  const isBetweenTwo = control === 'net-namespace' && launch[0].probe.isAlone !== true
  try {
    await using _ = isBetweenTwo ? await startNeighbour(lab, listeners, alter) : null
    const answers = await answersOfLaunch(lab, launch, exposure, alter)
    return new Map([...shared(launch, answers)].map(([probe, own]) => [probe, { answers: own }]))
  } catch (error) {
    if (!(error instanceof SallyportError) || !refusals.has(error.code)) throw error
    return new Map(launch.map(({ probe }) => [probe, { refused: error.message }]))
  }
}
