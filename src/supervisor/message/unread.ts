// What can be told of a message that cannot be read: whose it is, and who waits for it.
import { decodeString, JsonScanError, type Member, members } from '../../lib/json-scan.ts'
import { type MessageId, messageId } from './message-id.ts'

/** Characters at the end of a line in which an id is looked for */
const tailLength = 200
/** The same of the key of whatever could not be read to its end */
const keyLength = 64

/** Whom an error about it is for. */
export interface Unread {
  /** Its own id, where one could be read and it is no answer: that has the id of a request of the other side's */
  readonly id: MessageId | null
  /** The request that it would answer */
  readonly answers: MessageId | null
}

const nobody: Unread = { id: null, answers: null }

/** The same of the message from `start` to `end` that failed so; `found` are the members before the one in which it did. */
export function unread(
  text: string,
  start: number,
  end: number,
  { kind }: JsonScanError,
  found: readonly Member[],
): Unread {
  if (kind === 'syntax') return nobody
  const all = kind === 'duplicate' ? membersOf(text, start, end, true) : found
  const named = (): MessageId | null =>
    firstId(text, all) ?? lastId(text.slice(Math.max(start, end - tailLength), end))
  switch (shapeOf(text, start, all)) {
    case 'request':
      return { id: kind === 'depth' ? null : named(), answers: null }
    case 'answer':
      return { id: null, answers: named() }
    case 'unknown':
      return { id: kind === 'depth' ? null : named(), answers: named() }
  }
}

/** The id in the beginning of a message that was cut off, or null; whether it is one that has a method, and whether it is an answer. */
export function readHead(text: string): {
  readonly id: MessageId | null
  readonly hasMethod: boolean
  readonly isAnswer: boolean
} {
  const found = membersOf(text, 0, text.length, false)
  const hasMethod = found.some(({ key }) => key === 'method')
  return { id: onlyId(text, found), hasMethod, isAnswer: shapeOf(text, 0, found) === 'answer' }
}

/** The id that ends a line: where an object's last member is `"id"`, no other reading is possible. */
export function lastId(tail: string): MessageId | null {
  const found = /[,{]"id"\s*:\s*(-?\d[\d.eE+-]*|"[^"\\]*")\s*\}\s*$/.exec(tail)
  return found?.[1] === undefined ? null : messageId(found[1])
}

/** The id among these members, where it is one. */
export function onlyId(text: string, found: readonly Member[]): MessageId | null {
  const ids = found.filter(({ key }) => key === 'id')
  const [only] = ids
  return only !== undefined && ids.length === 1 ? messageId(text.slice(only.start, only.end)) : null
}

/** The same, or the first of several: whoever said them waits under one of them. */
const firstId = (text: string, found: readonly Member[]): MessageId | null =>
  onlyId(text, found.filter(({ key }) => key === 'id').slice(0, 1))

/** As many of the members as can be read. */
function membersOf(text: string, start: number, end: number, bounded: boolean): readonly Member[] {
  const found: Member[] = []
  try {
    members(text, start, end, { bounded }, found)
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
  }
  return found
}

/** By what has been read, and the key of what could not be. */
function shapeOf(text: string, start: number, found: readonly Member[]): 'request' | 'answer' | 'unknown' {
  const from = found.at(-1)?.end ?? start
  const written = /^[\s,{]*("(?:[^"\\]|\\.)*")/.exec(text.slice(from, from + keyLength))?.[1]
  const next = written === undefined ? undefined : decodeString(written)
  const has = (...keys: readonly string[]): boolean =>
    found.some(({ key }) => keys.includes(key)) || (next !== undefined && keys.includes(next))
  if (has('method', 'params')) return 'request'
  return has('result', 'error') ? 'answer' : 'unknown'
}
