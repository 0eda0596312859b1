// Lines and messages of the control protocol: bounds, exact ids, named faults.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseReply, parseRequest, resultLine } from '../../src/rpc/framing.ts'
import { LineBuffer } from '../../src/rpc/line-buffer.ts'
import { RawJson } from '../../src/lib/raw-json.ts'

const parse = (text: string | Buffer) => parseRequest(Buffer.from(text))

function fault(text: string | Buffer): string {
  const message = parse(text)
  return message.kind === 'fault' ? `${message.error.code} ${message.id.raw}` : message.kind
}

describe('LineBuffer', () => {
  it('gives the same lines however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.array(fc.nat(20)), (texts, cuts) => {
        const lines = texts.map((text) => text.replaceAll('\n', ' '))
        let bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
        const buffer = new LineBuffer()
        const got: string[] = []
        const drain = (): void => {
          for (let line = buffer.next(); line !== null; line = buffer.next()) got.push(line.toString())
        }
        for (const cut of cuts) {
          buffer.push(bytes.subarray(0, cut))
          bytes = bytes.subarray(cut)
          drain()
        }
        buffer.push(bytes)
        drain()
        expect(got).toEqual(lines)
        expect(buffer.rest()).toHaveLength(0)
      }),
    )
  })

  it('refuses a line over the limit before its end has come', () => {
    const buffer = new LineBuffer(8)
    buffer.push(Buffer.from('12345678\n12345'))
    expect(buffer.next()?.toString()).toBe('12345678')
    expect(buffer.next()).toBeNull()
    buffer.push(Buffer.from('6789'))
    expect(() => buffer.next()).toThrow(expect.objectContaining({ code: 'ERR_MESSAGE_TOO_LARGE' }))
  })

  it('takes two million single bytes in linear time', () => {
    const buffer = new LineBuffer()
    const byte = Buffer.from('x')
    const before = process.cpuUsage()
    for (let i = 0; i < 2_000_000; i++) {
      buffer.push(byte)
      buffer.next()
    }
    // Not by the clock, which others on the machine have a part in; what copies all of it each time takes minutes
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(5)
    expect(buffer.rest()).toHaveLength(2_000_000)
  })

  it('keeps what stands behind a line for whoever takes over', () => {
    const buffer = new LineBuffer()
    buffer.push(Buffer.from('one\ntwo\nthr'))
    buffer.push(Buffer.from('ee'))
    expect(buffer.next()?.toString()).toBe('one')
    expect(buffer.rest().toString()).toBe('two\nthree')
  })
})

describe('a request', () => {
  it.each([
    ['1', '1'],
    ['1.0', '1.0'],
    ['-0', '-0'],
    ['12345678901234567890', '12345678901234567890'],
    ['1e2', '1e2'],
    ['""', '""'],
    ['"caf\\u00e9 é"', '"caf\\u00e9 é"'],
  ])('with id %s is answered with id %s', (id, echoed) => {
    const message = parse(`{"id": ${id} ,"jsonrpc":"2.0","method":"m"}`)
    expect(message).toMatchObject({ kind: 'request', id: { raw: echoed } })
    expect(resultLine(new RawJson(echoed), 1)).toBe(`{"jsonrpc":"2.0","id":${echoed},"result":1}\n`)
  })

  it.each(['null', 'true', '[]', '[1]', '{}', '{"a":1}'])('with id %s is refused, naming none', (id) => {
    expect(fault(`{"jsonrpc":"2.0","id":${id},"method":"m"}`)).toBe('ERR_INVALID_REQUEST null')
  })

  it.each([
    ['', 'blank'],
    ['\r', 'blank'],
    ['{', 'ERR_PARSE null'],
    ['nonsense', 'ERR_PARSE null'],
    ['{"jsonrpc":"2.0","id":1,"method":"m"}\0', 'ERR_PARSE null'],
    ['\ufeff{"jsonrpc":"2.0","id":1,"method":"m"}', 'ERR_PARSE null'],
    ['[]', 'ERR_BATCH_REFUSED null'],
    ['[{}, not even JSON', 'ERR_BATCH_REFUSED null'], // it was read no further
    ['[{"jsonrpc":"2.0","id":1,"method":"m"}]', 'ERR_BATCH_REFUSED null'],
    ['1', 'ERR_INVALID_REQUEST null'],
    ['"text"', 'ERR_INVALID_REQUEST null'],
    ['null', 'ERR_INVALID_REQUEST null'],
    ['{}', 'ERR_INVALID_REQUEST null'],
    ['{"jsonrpc":"1.0","id":5,"method":"m"}', 'ERR_INVALID_REQUEST 5'],
    ['{"jsonrpc":"2.0","id":5}', 'ERR_INVALID_REQUEST 5'],
    ['{"jsonrpc":"2.0","id":5,"method":7}', 'ERR_INVALID_REQUEST 5'],
    ['{"jsonrpc":"2.0","id":5,"result":7}', 'ERR_INVALID_REQUEST 5'],
    ['{"jsonrpc":"2.0","method":"m"}', 'notification'],
    ['{"jsonrpc":"2.0","id":5,"id":6,"method":"m"}', 'ERR_MESSAGE_AMBIGUOUS null'],
    ['{"jsonrpc":"2.0","id":5,"method":"m","Method":"n"}', 'ERR_MESSAGE_AMBIGUOUS 5'],
    ['{"jsonrpc":"2.0","id":5,"method":"m","method\\u0000":"n"}', 'ERR_MESSAGE_AMBIGUOUS 5'],
    ['{"jsonrpc":"2.0","id":5,"method":"m","param\\u017f":{},"params":{}}', 'ERR_MESSAGE_AMBIGUOUS 5'],
    ['{"jsonrpc":"2.0","id":5,"method":"m","params":{"server":"a","SERVER":"b"}}', 'ERR_MESSAGE_AMBIGUOUS 5'],
    [
      '{"jsonrpc":"2.0","id":5,"method":"m","params":{"arguments":{"a":[{"b":1,"b":2}]}}}',
      'ERR_MESSAGE_AMBIGUOUS 5',
    ],
    ['{"jsonrpc":"2.0","id":5,"method":"m","params":{"arguments":{"a":1,"A":2}}}', 'request'],
  ])('%j is %s', (line, outcome) => {
    expect(fault(line)).toBe(outcome)
  })

  it.each([
    ['\ufeff{"jsonrpc":"2.0","id":1,"method":"m"}', 'it begins with a byte order mark; send it without one'],
    ['nonsense', 'unexpected character'],
    ['"begun', 'it ends too early'],
  ])('%j is refused with a word that is true of it', (line, why) => {
    const message = parse(line)
    expect(message.kind === 'fault' ? message.error.message : '').toContain(why)
  })

  it('that is not UTF-8 is refused', () => {
    expect(fault(Buffer.from([0x22, 0xff, 0xfe, 0x22]))).toBe('ERR_PARSE null')
    expect(fault(Buffer.from([0xed, 0xa0, 0x80]))).toBe('ERR_PARSE null')
  })

  it('gives its arguments as they were written', () => {
    const text = '{ "n": 12345678901234567890, "f": 1.0, "é": "\\u00e9", "__proto__": {} }'
    const message = parse(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"é":0,"arguments": ${text} }}`,
    )
    expect(message.kind === 'request' && message.text('arguments')?.raw).toBe(text)
    expect(message.kind === 'request' && message.text('absent')).toBeNull()
  })

  it('with more in it than is read is refused, by its id', () => {
    const heavy = (items: number): string =>
      `{"jsonrpc":"2.0","id":5,"method":"m","params":{"arguments":[${'1,'.repeat(items)}1]}}`
    expect(fault(heavy(200_000))).toBe('request')
    expect(fault(heavy(250_000))).toBe('ERR_MESSAGE_TOO_LARGE 5')
    const keys = Array.from({ length: 10_001 }, (_, n) => `"k${n}":1`).join()
    expect(fault(`{"jsonrpc":"2.0","id":5,"method":"m","params":{${keys}}}`)).toBe('ERR_MESSAGE_TOO_LARGE 5')
  })

  it('nested to any depth is answered, not a crash', () => {
    const deep = '['.repeat(1_000_000) + ']'.repeat(1_000_000)
    expect(fault(`{"jsonrpc":"2.0","id":1,"method":"m","params":${deep}}`)).toMatch(/^ERR_/)
  })

  it('is never an exception, whatever the bytes', () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void parseRequest(Buffer.from(bytes))))
    fc.assert(fc.property(fc.json(), (text) => void parse(text)))
  })
})

it('an error read from the wire is the error that was sent', () => {
  const reply = parseReply(
    Buffer.from(
      '{"jsonrpc":"2.0","id":1,"error":{"code":1050,"message":"no","data":{"code":"ERR_SERVER_NOT_FOUND","server":"x"}}}',
    ),
  )
  expect(reply).toMatchObject({
    kind: 'error',
    id: 1,
    error: { code: 'ERR_SERVER_NOT_FOUND', details: { server: 'x' } },
  })
})
