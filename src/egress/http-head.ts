// The head of an HTTP/1.1 request, read so that nobody could read it otherwise (RFC 9112); whatever is ambiguous is refused.
import { withoutTrailing } from '../lib/trailing.ts'
import { headBytes, headFields } from './limits.ts'
import type { Found } from './opening.ts'
import { Refusal } from './refusal.ts'

/** A request's head as it was written. */
export interface Head {
  readonly method: string
  readonly target: string
  readonly version: '1.0' | '1.1'
  /** In their order, names as written */
  readonly fields: readonly (readonly [name: string, value: string])[]
}

const requestLine = /^([A-Z][A-Z-]{0,31}) ([\x21-\x7e]+) HTTP\/(1\.[01])$/
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const value = /^[\t\x20-\x7e\x80-\xff]*$/
/** What says where a body ends has spaces around it and no tab: behind `chunked` one makes it another coding to some readers */
const tabbed = /^(transfer-encoding|content-length):.*\t/i

/** Returns a reader of a head; it throws head-too-large, or bad-request at the first line that is not as it should be. */
export function headReader(): (chunk: Buffer) => Found<Head> | null {
  const parts: string[] = []
  let size = 0
  /** What may be the beginning of the end, with the letter before a line feed */
  let tail = ''
  let hasFirstLine = false
  return (chunk) => {
    const before = size
    const part = chunk.toString('latin1')
    const said = tail + part // nothing is looked at more than twice, in however many pieces it comes
    const from = before - tail.length
    parts.push(part)
    size += part.length
    const found = said.indexOf('\r\n\r\n')
    const end = found < 0 ? -1 : from + found
    if (end > headBytes || (end < 0 && size > headBytes)) throw new Refusal('head-too-large')
    if (end >= 0) return { value: parseHead(parts.join('').slice(0, end)), used: end + 4 - before }
    // A head that never ends in its way is refused when that shows, not when the deadline has passed.
    if (/[^\r]\n|\0/.test(said) || (from === 0 && /^[^A-Z]/.test(said))) throw badRequest()
    const line = hasFirstLine ? -1 : said.indexOf('\r\n')
    if (line >= 0 && !requestLine.test(parts.join('').slice(0, from + line))) throw badRequest()
    hasFirstLine ||= line >= 0
    tail = said.slice(-3)
    return null
  }
}

function parseHead(text: string): Head {
  const [first = '', ...rest] = text.split('\r\n')
  const [, method, target, version] = requestLine.exec(first) ?? []
  if (method === undefined || target === undefined) throw badRequest()
  if (rest.length > headFields) throw new Refusal('head-too-large')
  return { method, target, version: version === '1.0' ? '1.0' : '1.1', fields: rest.map(parseField) }
}

/** A line that begins with a blank would continue the one before (obs-fold), and has no name that the pattern takes. */
function parseField(line: string): readonly [string, string] {
  const colon = line.indexOf(':')
  const [name, content] = [line.slice(0, Math.max(0, colon)), line.slice(colon + 1)]
  if (!fieldName.test(name) || !value.test(content) || tabbed.test(line)) throw badRequest()
  let start = 0
  while (content[start] === ' ' || content[start] === '\t') start++
  return [name, withoutTrailing(content.slice(start), [' ', '\t'])]
}

const badRequest = (): Refusal => new Refusal('bad-request')
