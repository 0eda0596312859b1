// What a control is: what holds something, and the same launch with that one taken out.
import type { BubblewrapPlan } from '../../sandbox/bubblewrap/driver.ts'
import type { LaunchPlan } from '../../sandbox/launch.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import type { Lab } from '../lab/lab.ts'
import type { RemoveOf } from '../lab/removal.ts'
import type { Layer } from '../result.ts'

/** A control, and how a launch is made without it. */
export interface Control {
  readonly what: string
  readonly layer: Layer
  readonly arm: ArmOf<BubblewrapPlan>
}

/**
 * A launch without a control: `without` changes its plan, `around` what the supervisor has around it. Where `isRefused` says so,
 * that sandbox must not even come up.
 */
export interface ArmOf<Plan extends LaunchPlan> {
  readonly without?: RemoveOf<Plan>
  readonly around?: (lab: Lab) => Lab
  readonly isRefused?: (spec: Pick<SandboxSpec, 'network'>) => boolean
}
