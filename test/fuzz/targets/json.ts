// JSON as it comes from hosts, operators and servers: what is taken is what JSON.parse reads, and nothing else is.
import { isUtf8 } from 'node:buffer'
import { deepStrictEqual, equal, ok } from 'node:assert/strict'
import reference from 'canonicalize'
import { canonicalize, depthLimit, NotCanonical } from '../../../src/call/canonical.ts'
import { inexactNumber } from '../../../src/call/inexact.ts'
import { SallyportError } from '../../../src/errors.ts'
import { LineSplitter } from '../../../src/lib/lines.ts'
import { parseReply, parseRequest } from '../../../src/rpc/framing.ts'
import { LineBuffer } from '../../../src/rpc/line-buffer.ts'
import { readUnambiguous } from '../../../src/supervisor/message/envelope.ts'
import type { Target } from '../target.ts'

const words = [
  '{"jsonrpc":"2.0","id":1,"method":"m","params":{}}',

  '"id":',
  '"jsonrpc":"2.0",',
  '"method":"',
  '"params":{',
  '"result":',
  '"error":{',
  '"data":{"code":"ERR_',

  '\\u0000',
  '\\ud800',
  '\\udc00',
  '\\u0069d',
  '"__proto__":',
  '"ID":1,',
  'null',
  'true',
  '1e400',
  '-0',
  '1.0',
  '\ufeff',
  '\r\n',
  '\n',
  '\0',
  '[[[[',
  '{"a":',
  '12345678901234567890',
  '\u017f',
  '\u212a',
  '\\"',
  '"',
]

/** What JSON.parse makes of the bytes; undefined where it is none. */
const read = (bytes: Buffer): unknown => {
  if (!isUtf8(bytes)) return undefined
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

const member = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined

function expectRequest(line: Buffer): void {
  const value = read(line)
  const message = parseRequest(line)
  if (value === undefined)
    ok(message.kind === 'fault' || message.kind === 'blank', 'no JSON, and yet a message')
  if (message.kind === 'fault') ok(!/[\n\0]/.test(message.error.message), 'a fault of several lines')
  if (message.kind === 'notification') equal(message.method, member(value, 'method'))
  if (message.kind !== 'request') return
  equal(message.method, member(value, 'method'))
  deepStrictEqual(JSON.parse(message.id.raw), member(value, 'id'))
  deepStrictEqual(message.params, member(value, 'params') ?? {})
  for (const key of Object.keys(Object(message.params) as object))
    if (!Array.isArray(message.params))
      deepStrictEqual(read(Buffer.from(message.text(key)?.raw ?? '')), member(message.params, key))
}

function expectEnvelope(line: Buffer): void {
  const value = read(line)
  const message = readUnambiguous(`${line.toString('latin1')}\n`, 0, line.length)
  if (message.kind === 'invalid') {
    ok(message.error instanceof SallyportError)
    return
  }
  // A server's line that is no UTF-8 is refused before it gets here.
  if (!isUtf8(line)) return
  ok(value !== undefined, 'no JSON, and yet a message')
  if (message.kind !== 'response')
    equal(Buffer.from(message.method, 'latin1').length > 0, message.method !== '')
  const span = message.kind === 'response' ? message.result : message.params
  if (span === null) return
  const said = read(Buffer.from(message.text.slice(span.start, span.end), 'latin1'))
  deepStrictEqual(said, member(value, message.kind === 'response' ? 'result' : 'params'))
}

function expectReply(line: Buffer): void {
  try {
    const reply = parseReply(line)
    if (reply.kind === 'result')
      deepStrictEqual(read(Buffer.from(reply.text().raw)) ?? null, reply.result ?? null)
  } catch (error) {
    ok(error instanceof Error && ['SallyportError', 'JsonScanError'].includes(error.name), String(error))
  }
}

/** Lines of a connection, cut as the first byte says. */
export const framing: Target = {
  name: 'framing',
  seeds: [
    '\x03{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"arguments":{"b":[1.0,null]}}}\nrest',
    '\x40{"jsonrpc":"2.0","id":"x","result":{"a":1}}\n{"jsonrpc":"2.0","id":1,"error":{"code":1050,"message":"no","data":{"code":"ERR_SERVER_NOT_FOUND"}}}\n',
    '\x07[]\r\n\n\xef\xbb\xbf{}\n{"jsonrpc":"2.0","method":"n"}\n',
  ],
  words,
  run(bytes) {
    const step = 1 + ((bytes[0] ?? 0) % 64)
    const stream = bytes.subarray(1)
    const limit = 1 + ((bytes[0] ?? 0) >> 1)
    const buffer = new LineBuffer()
    const [taken, split, over]: [Buffer[], Buffer[], number[]] = [[], [], []]
    const splitter = new LineSplitter(limit, {
      line: (at, _text, start, end) => split.push(Buffer.from(at.subarray(start, end))),
      overlong: () => undefined,
      overlongEnd: (_tail, size) => over.push(size),
    })
    for (let at = 0; at < stream.length; at += step) {
      buffer.push(stream.subarray(at, at + step))
      splitter.push(stream.subarray(at, at + step))
      for (let line = buffer.next(); line !== null; line = buffer.next()) taken.push(line)
    }
    const lines: Buffer[] = []
    let from = 0
    for (let end = stream.indexOf(10); end >= 0; end = stream.indexOf(10, from)) {
      lines.push(stream.subarray(from, end))
      from = end + 1
    }
    deepStrictEqual(taken.map(String), lines.map(String))
    deepStrictEqual(buffer.rest().toString('latin1'), stream.toString('latin1', from))
    deepStrictEqual(split.map(String), lines.filter(({ length }) => length <= limit).map(String))
    deepStrictEqual(
      over,
      lines.map(({ length }) => length).filter((length) => length > limit),
    )
    for (const line of lines) {
      expectRequest(line)
      expectEnvelope(line)
      expectReply(line)
    }
  },
}

/** Arguments in their one form, as another library writes it. */
export const canonical: Target = {
  name: 'canonical',
  seeds: [
    '{"b":[1,2.50,-0,1e21,1e-7],"a":"\\u00e9\\ud83d\\ude00","__proto__":{"x":null}}',
    '[[[1.0]],"",{"":{}}]',
  ],
  words: [...words, '9007199254740993', '1e21', '5e-324', '0.1', '"\\ud83d\\ude00":', '"\ufb33":'],
  run(bytes) {
    const value = read(bytes)
    if (value === undefined) return
    inexactNumber(bytes.toString())
    let mine
    try {
      mine = canonicalize(value)
    } catch (error) {
      if (error instanceof NotCanonical) expectNone(value, error)
      else throw error
      return
    }
    equal(mine, reference(value))
    equal(canonicalize(JSON.parse(mine)), mine)
  },
}

/** There is a reason: it is too deep for us, or the other library finds none either. */
function expectNone(value: unknown, { message }: NotCanonical): void {
  if (message.endsWith(`deeper than ${depthLimit} levels`)) return
  let theirs
  try {
    theirs = reference(value)
  } catch {
    return
  }
  throw new Error(`${message}, and yet the form ${theirs}`)
}
