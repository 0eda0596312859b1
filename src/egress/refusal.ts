// Why a connection came to nothing: one stable word, kept from where it was found to the record and the answer.
import { StacklessError } from '../lib/stackless-error.ts'
import type { EgressVerdict } from '../schema/egress.ts'

/** Why a connection ends in which something of a credential stands where nobody may swap it. */
export const placeholderElsewhere = 'placeholder-elsewhere'

/**
 * Ends one connection. `refused` is the policy's no, `failed` is the network's, `cut` came from us later. It is told by its
 * word.
 */
export class Refusal extends StacklessError {
  override readonly name = 'Refusal'
  readonly reason: string
  readonly verdict: Exclude<EgressVerdict, 'connected' | 'ended'>

  constructor(reason: string, verdict: Exclude<EgressVerdict, 'connected' | 'ended'> = 'refused') {
    super(reason)
    this.reason = reason
    this.verdict = verdict
  }

  /** Whatever else was thrown is a failure of ours, and says no more than that. */
  static from(error: unknown): Refusal {
    return error instanceof Refusal ? error : new Refusal('internal', 'failed')
  }
}
