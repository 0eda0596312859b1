// The events of governance: what each row of the failure table is called, and who may see it.
import { borrowed } from '../../call/borrowed.ts'
import { catalogue, type SallyportError } from '../../errors.ts'
import type { Proposal } from '../../schema/governor.ts'
import type { Emit, Happening } from '../../supervisor/ports.ts'
import { maxLength } from './seen.ts'

/** Everybody's event, or with `operator` as the principal one that no host can have. */
export const event = (
  type: string,
  server: string | null,
  detail: Happening['detail'],
  principal: string | null = null,
): Happening => ({ type, server, instance: null, principal, detail })

/** That tools of a server are accepted from now on; and which of them are called as hosts call tools of their own. */
export const acceptance = (server: string, by: string, tools: ReadonlyMap<string, unknown>): Happening =>
  event('surface/accepted', server, { by, tools: [...tools.keys()], borrowed: borrowed(tools.keys()) })

/** Why a server of a static surface is halted that lists these. */
export const undeclaredWords = (tools: readonly string[]): string =>
  `it lists ${tools.slice(0, 5).join(', ')}, which nobody declared, and its surface is static: a server that lists by client or changes as it runs needs surface: dynamic`

/** Why what was accepted can't be called where a server lists more than is looked at. */
export const beyondWords = (limit: number): string =>
  `they were accepted, and are not among the first ${limit} tools that it lists, which is all that is looked at: raise tools.per_server`

/** Why what a server lists can't be accepted by anybody. */
export const passedOverWords = `nobody can tell what they are, since they cannot be read in one way or have no name of a tool, or they are beyond the first ${maxLength} characters that it lists`

/** What has a server's tools called that are not accepted. */
export const mendOf = (server: string): string => `sallyport accept ${server}`

/** What the failure table calls its events. */
export const failureEvents: Readonly<Record<string, string>> = {
  'MP-FH-001': 'server/unavailable',
  'MP-FH-002': 'surface/ungoverned-call',
  'MP-FH-003': 'declaration/mismatch',
  'MP-FH-004': 'call/timeout',
  'MP-FH-005': 'surface/ungoverned',
  'MP-FH-006': 'permit/refused',
  'MP-FH-007': 'isolation/failed',
  'MP-FH-008': 'scope/violated',
  'MP-FH-009': 'version/mismatch',
  'MP-FH-010': 'journal/blocked',
}

/** Tells of a call that is not made, and of the failure that it comes of. */
export function tellRefusal(
  { call, server: { name: server }, subject, instance, principal }: Proposal,
  error: SallyportError,
  emit: Emit,
): void {
  const { code, details, message } = error
  const { failure } = catalogue[code]
  const detail = { call, tool: subject, ...details, code, failure, reason: message }
  emit({ type: 'call/denied', server, instance, principal, detail })
  if (failure !== null) emit({ type: failureEvents[failure] ?? failure, server, instance, principal, detail })
}

/** What is not kept -> what that takes away, and what it does not. */
const notKeptMeans = {
  owed: 'what has effect already is on no disk, and a kill loses it',
  'owed-file':
    'what was owed is on record; a file that has it still can’t be removed, and the next start records it once more',
  head: 'the records are kept; where they end is not written beside them, so an end that is cut off may not be seen',
  snapshot: 'the records are kept; a snapshot of them is not, so a start reads more of them',
  pruning: 'the records are kept; those older than journal.keep_days are not let go of',
} as const

/** Something that is kept in the journal's folders could not be: which, and what follows. */
export const notKept = (what: keyof typeof notKeptMeans, { code, message }: SallyportError): Happening =>
  event('journal/not-kept', null, { what, code, reason: `${notKeptMeans[what]}: ${message}` })
