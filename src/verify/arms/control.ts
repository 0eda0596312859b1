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
 * A launch without a control: `without` changes its plan, `around` what the supervisor has around it. Where `refusal` has words,
 * that sandbox must not even come up, and these are said of why. What keeps it from coming up otherwise shows nothing.
 */
export interface ArmOf<Plan extends LaunchPlan> {
  readonly without?: RemoveOf<Plan>
  readonly around?: (lab: Lab) => Lab
  readonly refusal?: (spec: Pick<SandboxSpec, 'network'>) => RegExp | null
}

/** What sallyport-init says where another process is the first one. */
export const notPid1 = /not 1: init runs as the first process/
