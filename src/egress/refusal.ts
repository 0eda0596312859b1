// Why a connection came to nothing: one stable word, kept from where it was found to the record and the answer.
import type { EgressVerdict } from '../schema/egress.ts'

/** Why a connection ends in which something of a credential stands where nobody may swap it. */
export const placeholderElsewhere = 'placeholder-elsewhere'

/**
 * Ends one connection. `refused` is the policy's no, `failed` is the network's, `cut` came from us later. It is told by its
 * word, and has no stack: whoever floods the door with refusals does not make us write one for each.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly reason: string
  readonly verdict: Exclude<EgressVerdict, 'connected' | 'ended'>

  constructor(reason: string, verdict: Exclude<EgressVerdict, 'connected' | 'ended'> = 'refused') {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(reason)
    Error.stackTraceLimit = stackTraceLimit
    this.reason = reason
    this.verdict = verdict
  }

  /** Whatever else was thrown is a failure of ours, and says no more than that. */
  static from(error: unknown): Refusal {
    return error instanceof Refusal ? error : new Refusal('internal', 'failed')
  }
}
