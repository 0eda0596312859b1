// A call that is not made: on record, and told of.
import { SallyportError } from '../errors.ts'
import type { Proposal } from '../schema/governor.ts'
import { sentDigest } from './canonical.ts'
import type { Permitted } from './passed.ts'
import type { Ended, GovernPorts } from './ports.ts'
import { denied, refusals } from './refusal.ts'

/** How far a call had come that was never sent. */
export interface Unsent {
  readonly permitted: Permitted | null
  /** Seq of its intent, where that is durable */
  readonly intent: number | null
}

/**
 * Records and tells of a refusal; never rejects. Where the record fails, that is the error, and the end of a call with an
 * intent is owed to the journal as any outcome is.
 */
export async function refuse(
  proposal: Proposal,
  { permitted, intent }: Unsent,
  error: unknown,
  ports: GovernPorts,
): Promise<SallyportError> {
  let failure = SallyportError.from(error)
  try {
    failure = haltOr(failure, proposal, ports)
    ports.refuse(proposal, failure)
    if (failure.code !== 'ERR_JOURNAL') {
      await recordDenial(proposal, failure, ports)
      return failure
    }
  } catch (thrown) {
    failure = SallyportError.from(thrown)
  }
  if (permitted !== null && intent !== null) ports.owe(endOf(proposal, permitted, intent, failure))
  return failure
}

/** Of a server that was halted for what it did, while the call was on its way, that it is not there says less. */
function haltOr(
  failure: SallyportError,
  proposal: Proposal,
  { registry }: Pick<GovernPorts, 'registry'>,
): SallyportError {
  if (failure.code !== 'ERR_SERVER_UNAVAILABLE') return failure
  const { server, kind, subject } = proposal
  const standing = registry.standing(server.name, null, kind, subject)
  return standing.state === 'ungoverned' || standing.state === 'violated'
    ? denied(proposal, refusals[standing.state], standing.reason)
    : failure
}

function endOf(proposal: Proposal, permitted: Permitted, intent: number, { message }: Error): Ended {
  const { call, kind, subject, principal } = proposal
  const { permit, decided } = permitted
  const [server, trustEpoch, { target }] = [proposal.server.name, decided.trust.epoch, decided.about]
  const { identity } = permit.binding
  const of = { call, server, kind, subject, identity, principal }
  const admission = { ...of, permit: permit.id, intent, trustEpoch, repeats: false, target }
  const detail = `it was never sent: ${message}`
  return { admission, outcome: { kind: 'cancelled', durationMs: 0, bytes: null, detail }, used: null }
}

async function recordDenial(proposal: Proposal, failure: SallyportError, ports: GovernPorts): Promise<void> {
  const { code, failure: id } = failure.toRpc().data
  const { rule = null, check = null } = failure.details
  await ports.recorder.record(
    'call.denied',
    {
      call: proposal.call,
      server: proposal.server.name,
      kind: proposal.kind,
      subject: proposal.subject,
      principal: proposal.principal,
      peer: proposal.peer,
      session: proposal.session,
      lineage: proposal.lineage,
      ...(proposal.id === null ? {} : { request_id: proposal.id }),
      bytes_digest: sentDigest(proposal.bytes, proposal.evidence),
      policy: ports.policyVersion(proposal.server.name),
      rule,
      check,
      code,
      failure: id,
      reason: failure.message,
    },
    { request: proposal.evidence },
  )
}
