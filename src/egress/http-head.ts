// The head of an HTTP/1.1 request, read so that nobody could read it otherwise (RFC 9112); whatever is ambiguous is refused.
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
const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/
const value = /^[\t\x20-\x7e\x80-\xff]*$/
/** What says where a body ends has spaces around it and no tab: behind `chunked` one makes it another coding to some readers */
const tabbed = /^(transfer-encoding|content-length):.*\t/i

/** Returns a reader of a head; it throws head-too-large, or bad-request at the first line that is not as it should be. */
export function headReader(): (chunk: Buffer) => Found<Head> | null {
  let text = ''
  return (chunk) => {
    const before = text.length
    text += chunk.toString('latin1')
    const end = text.indexOf('\r\n\r\n', Math.max(0, before - 3))
    if (end > headBytes || (end < 0 && text.length > headBytes)) throw new Refusal('head-too-large')
    if (end >= 0) return { value: parseHead(text.slice(0, end)), used: end + 4 - before }
    refuseEarly(text)
    return null
  }
}

/** A head that never ends in its way is refused when that shows, not when the deadline has passed. */
function refuseEarly(text: string): void {
  if (/^[^A-Z]|[^\r]\n|^\n|\0/.test(text)) throw badRequest()
  const first = text.indexOf('\r\n')
  if (first >= 0 && !requestLine.test(text.slice(0, first))) throw badRequest()
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
  const [, name, content] = field.exec(line) ?? []
  if (name === undefined || content === undefined || !value.test(content) || tabbed.test(line))
    throw badRequest()
  return [name, content]
}

const badRequest = (): Refusal => new Refusal('bad-request')
