// One control's arm under one driver: how a launch is made without it, and whether that must even come up.
import type { LaunchPlan } from '../sandbox/launch.ts'
import type { Network, SandboxSpec } from '../sandbox/spec.ts'
import { containerArms } from './container-arms.ts'
import { type Control, type ControlId, controlOf } from './controls.ts'
import type { Lab } from './lab.ts'
import type { Exposure } from './removal.ts'

/** Null for a plan of which the control can't be taken out. */
export interface Arm {
  readonly alter: (plan: LaunchPlan, exposure: Exposure) => LaunchPlan | null
  readonly around: (lab: Lab) => Lab
  readonly isRefused: (spec: Pick<SandboxSpec, 'network'>) => boolean
  /** Whether there is one for that network */
  readonly isThere: (network: Network['mode']) => boolean
}

/** Returns the arm, as the driver has it. */
export const armOf = (id: ControlId, driver: LaunchPlan['driver']): Arm => {
  const { arm }: Control = controlOf(id)
  const around = arm.around ?? ((lab: Lab) => lab)
  const contained = isOfBoth(id) ? null : containerArms[id]
  const isRefused =
    driver === 'docker'
      ? () => contained !== null && contained.without !== null && contained.isRefused === true
      : (arm.isRefused ?? (() => false))
  return {
    around,
    isRefused,
    isThere: (network) =>
      driver === 'bubblewrap' ||
      contained === null ||
      (contained.without !== null && (network === 'allowlist' || contained.needsNetwork !== true)),
    alter(plan, exposure) {
      if (plan.driver === 'bubblewrap') return { ...plan, ...arm.without?.(plan, exposure) }
      if (contained === null) return plan
      const less = contained.without?.(plan, exposure) ?? null
      return less === null ? null : { ...plan, ...less }
    },
  }
}

/** What is around a sandbox is the same under each driver, and what a driver has not needs no arm there. */
const isOfBoth = (id: ControlId): id is Exclude<ControlId, keyof typeof containerArms> =>
  !Object.hasOwn(containerArms, id)
