// One control's arm under one driver: how a launch is made without it, and the words by which that must not even come up.
import type { LaunchPlan } from '../../sandbox/launch.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import { containerArms } from './container-arms.ts'
import type { Control } from './control.ts'
import { type ControlId, controlOf } from './controls.ts'
import type { Lab } from '../lab/lab.ts'
import type { Exposure } from '../lab/removal.ts'

export interface Arm {
  readonly alter: (plan: LaunchPlan, exposure: Exposure) => LaunchPlan
  readonly around: (lab: Lab) => Lab
  readonly refusal: (spec: Pick<SandboxSpec, 'network'>) => RegExp | null
}

/** Returns the arm, as the driver has it. */
export const armOf = (id: ControlId, driver: LaunchPlan['driver']): Arm => {
  const { arm }: Control = controlOf(id)
  const contained = isOfBoth(id) ? null : containerArms[id]
  const refusal = driver === 'docker' ? contained?.refusal : arm.refusal
  return {
    around: (driver === 'docker' ? contained?.around : undefined) ?? arm.around ?? ((lab) => lab),
    refusal: refusal ?? (() => null),
    alter: (plan, exposure) =>
      plan.driver === 'bubblewrap'
        ? { ...plan, ...arm.without?.(plan, exposure) }
        : { ...plan, ...contained?.without?.(plan, exposure) },
  }
}

/** What is around a sandbox is the same under each driver, and what a driver has not needs no arm there. */
const isOfBoth = (id: ControlId): id is Exclude<ControlId, keyof typeof containerArms> =>
  !Object.hasOwn(containerArms, id)
