// A call that is not made: on record, and told of.
import { SallyportError } from '../errors.ts'
import type { Proposal } from '../schema/governor.ts'
import { sentDigest } from './canonical.ts'
import type { GovernPorts } from './ports.ts'

/** Records and tells of a refusal; never rejects. Where the record fails, that is the error. */
export async function refuse(
  proposal: Proposal,
  error: unknown,
  ports: GovernPorts,
): Promise<SallyportError> {
  try {
    const failure = SallyportError.from(error)
    ports.refuse(proposal, failure)
    if (failure.code !== 'ERR_JOURNAL') await recordDenial(proposal, failure, ports)
    return failure
  } catch (thrown) {
    return SallyportError.from(thrown)
  }
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
