// What a session's host asks for, as the governor is asked about it.
import { newCallId } from '../../lib/ids.ts'
import type { Proposal } from '../../schema/governor.ts'
import { comparingOf } from '../client/quiet.ts'
import type { Ask } from '../lanes/wire.ts'
import type { Asking } from './asking.ts'
import type { GovernedCallsOptions } from './options.ts'

/** One of the things that a held request asks for, as a call of its own. */
export function proposalOf(
  ask: Ask,
  { held, obstacle, admissions }: Asking,
  { server, session, principal, instance, surface }: GovernedCallsOptions,
): Proposal {
  return {
    call: newCallId(),
    kind: ask.kind,
    server,
    instance: instance(),
    subject: ask.subject,
    arguments: ask.arguments,
    bytes: ask.bytes,
    evidence: ask.evidence,
    principal: principal.id,
    peer: principal.attributes,
    session,
    lineage: held.lineage,
    obstacle,
    comparing: comparingOf(server, surface),
    isPart: admissions.length + 1 < held.asks.length,
  }
}
