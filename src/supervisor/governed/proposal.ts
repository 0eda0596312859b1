// What a session's host asks for, as the governor is asked about it.
import { newCallId } from '../../lib/ids.ts'
import { unicode } from '../../lib/one-way.ts'
import { onlyCounts } from '../../lib/only-counts.ts'
import { parseJson } from '../../lib/parse-json.ts'
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
    id: server.instance === 'shared' ? null : sayingId(held.request.id.raw), // there it is the daemon's own
    obstacle,
    comparing: comparingOf(server, surface),
    isPart: admissions.length + 1 < held.asks.length,
  }
}

const sayingId = (literal: string): string | null =>
  onlyCounts(literal) ? null : inOneSpelling(unicode(literal))

/** A text without needless escapes, in which nobody would find what looks like a secret. */
const inOneSpelling = (literal: string): string =>
  literal.startsWith('"') ? JSON.stringify(parseJson(literal)) : literal
