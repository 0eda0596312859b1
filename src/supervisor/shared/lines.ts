// What is rewritten where sessions share a process: ids, progress tokens and marks of subscriptions, and not a byte besides.
import { type Member, members, type Span } from '../../lib/json-scan.ts'
import type { Request } from '../message/envelope.ts'
import { type MessageId, messageId } from '../message/message-id.ts'

/** Says which `subscriptions/listen` a notification is for, by that request's id */
export const subscriptionKey = 'io.modelcontextprotocol/subscriptionId'
const logLevelKey = 'io.modelcontextprotocol/logLevel'

/** A literal, and what stands in its place. */
export type Edit = readonly [at: Span, literal: string]

/** What of a request has to be known to rewrite it. */
export interface Marks {
  readonly id: Span | null
  readonly progressToken: Span | null
  /** True where it asks for the log messages of its own work */
  readonly wantsLogs: boolean
}

/** The message from `start` to `end` with those literals in place of its own; with a line feed. */
export function edited(
  { text, start, end }: { readonly text: string; readonly start: number; readonly end: number },
  edits: readonly Edit[],
): string {
  const parts: string[] = []
  let from = start
  for (const [at, literal] of edits.toSorted(([a], [b]) => a.start - b.start)) {
    parts.push(text.slice(from, at.start), literal)
    from = at.end
  }
  return `${parts.join('')}${text.slice(from, end)}\n`
}

export function marksOf({ text, start, end, params }: Request): Marks {
  const meta = metaOf(text, params)
  return {
    id: only(members(text, start, end), 'id'),
    progressToken: only(meta, 'progressToken'),
    wantsLogs: only(meta, logLevelKey) !== null,
  }
}

/** Where a notification's params, or a result, say for which subscription they are; null where they don't. */
export const subscriptionIn = (text: string, said: Member | null): Span | null =>
  only(metaOf(text, said), subscriptionKey)

/** The one member of that name; null where there is none, or where readers could take one or another. */
export function only(found: readonly Member[], key: string): Member | null {
  const named = found.filter((member) => member.key === key)
  return named.length === 1 ? (named[0] ?? null) : null
}

/** The id that stands there, or null. */
export const idAt = (text: string, at: Span | null): MessageId | null =>
  at === null ? null : messageId(text.slice(at.start, at.end))

/** The members of `_meta`; none where it is no object, or stands twice. */
export function metaOf(text: string, said: Member | null): readonly Member[] {
  const meta = said === null ? null : only(said.inner, '_meta')
  return meta === null || text.charCodeAt(meta.start) !== 123 ? [] : members(text, meta.start, meta.end)
}
