// What the steps of a governed call have come to, one after another: each holds what the next one stands on.
import type { GovernedRequest } from '../schema/gate.ts'
import type { About } from './about.ts'
import type { Permit } from './permit.ts'
import type { LeaseAsk, Standing } from './ports.ts'
import type { TrustRecord } from './trust.ts'

/** After steps 1 and 2. */
export interface Proposed {
  readonly standing: Standing & { readonly state: 'accepted' }
  /** Canonical arguments */
  readonly text: string
  readonly argumentsDigest: string
  /** What will be sent, and was digested */
  readonly bytes: string
  readonly bytesDigest: string
}

/** After steps 3 and 4. */
export interface Decided {
  readonly proposed: Proposed
  readonly request: GovernedRequest
  readonly trust: TrustRecord
  readonly about: About
  readonly policyVersion: string
}

/** After step 7. */
export interface Permitted {
  readonly decided: Decided
  readonly permit: Permit
  readonly ask: LeaseAsk
  /** The yes that it goes by was said of a call before it */
  readonly repeats: boolean
}
