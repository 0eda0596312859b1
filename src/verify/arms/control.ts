// What a control is: what holds something, and the same launch with that one taken out.
import type { SandboxSpec } from '../../sandbox/spec.ts'
import type { Lab } from '../lab/lab.ts'
import type { Remove } from '../lab/removal.ts'
import type { Layer } from '../result.ts'

/**
 * A control, and how a launch is made without it: `without` changes its plan, `around` what the supervisor has around it. Where
 * `isRefused` says so, that sandbox must not even come up.
 */
export interface Control {
  readonly what: string
  readonly layer: Layer
  readonly arm: {
    readonly without?: Remove
    readonly around?: (lab: Lab) => Lab
    readonly isRefused?: (spec: Pick<SandboxSpec, 'network'>) => boolean
  }
}
