// What a server says of itself and what it lists, of which Sallyport reads all: no more than is read in a short turn.
import { SallyportError } from '../../errors.ts'
import { inTurns } from '../../lib/in-turns.ts'
import { elements, JsonScanError, type Member, members, type Span } from '../../lib/json-scan.ts'
import { isLong, ownTurn } from '../../lib/long-text.ts'
import { latin1, unicode } from '../../lib/one-way.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { spellings } from '../../lib/key-folding.ts'
import { confusableWithin } from './envelope.ts'

/** The value of a result. Throws ERR_SERVER_PROTOCOL for one that is long and no object, or has more in it than of a host's message is read. */
export function readAnswer(method: string, json: string): unknown {
  const problem = isLong(json) ? problemOf(json) : null
  if (problem !== null) throw unreadable(method, problem)
  return parseJson(json)
}

const unreadable = (method: string, problem: string): SallyportError =>
  new SallyportError('ERR_SERVER_PROTOCOL', `the answer to ${method} cannot be read: ${problem}`)

/** A page of a list: the texts of its elements, null where there is no one list to every reader, and where the next page begins. */
export interface Page {
  readonly listed: readonly string[] | null
  readonly nextCursor: unknown
}

/** Reads no more of a result than that, and a long one in turns of the event loop of its own. Throws as `readAnswer` does. */
export async function readPage(method: string, json: string, list: string): Promise<Page> {
  const isHeavy = isLong(json)
  if (isHeavy) await ownTurn()
  const text = latin1(json)
  const found = membersOf(method, text, isHeavy)
  const cursor = found.findLast(({ key }) => key === 'nextCursor')
  const nextCursor: unknown = cursor === undefined ? null : parseJson(textOf(text, cursor))
  const [one, ...more] = found.filter(({ key }) => key === list)
  if (one === undefined || more.length > 0 || text[one.start] !== '[') return { listed: null, nextCursor }
  // A session's host gets no such list either: it could read the other one.
  if (confusableWithin(found, spellings([list])) !== null) return { listed: null, nextCursor }
  if (isHeavy) await ownTurn()
  const spans = elements(text, one.start, one.end)
  return { listed: await inTurns(textsOf(text, spans)), nextCursor }
}

function* textsOf(text: string, spans: readonly Span[]): Generator<string> {
  for (const span of spans) yield textOf(text, span)
}

const textOf = (text: string, { start, end }: Span): string => unicode(text.slice(start, end))

/** None of what is no object. */
function membersOf(method: string, text: string, isHeavy: boolean): readonly Member[] {
  try {
    return members(text, 0, text.length, { bounded: isHeavy })
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error
    if (isHeavy) throw unreadable(method, error.message)
    return []
  }
}

/** Whether `readAnswer` would read it. */
export const isReadable = (json: string): boolean => !isLong(json) || problemOf(json) === null

/** Looks no further than what is too much. */
function problemOf(json: string): string | null {
  const text = latin1(json)
  try {
    members(text, 0, text.length, { bounded: true })
    return null
  } catch (error) {
    if (error instanceof JsonScanError) return error.message
    throw error
  }
}
