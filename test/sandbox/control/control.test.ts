// The control channel's codec: bounded, exact, and indifferent to how the kernel cuts the stream.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeReport,
  encodeFrame,
  encodeOrder,
  FrameReader,
  maxPayloadBytes,
  type Order,
} from '../../../src/sandbox/control/control.ts'

const letter = fc.constantFrom(...'cmubadvxtCDNrgeflnwoGTsKRSEX'.split(''))
const frames = fc.array(fc.tuple(letter, fc.uint8Array({ maxLength: 64 })), { maxLength: 12 })

const hex = (order: Order): string => encodeOrder(order).toString('latin1')

const cut = (bytes: Buffer, at: readonly number[]): Buffer[] => {
  const places = [...new Set([0, ...at.map((place) => place % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  )
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}

describe('frames', () => {
  test('any split of the bytes decodes to the same frames', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat()), (sent, at) => {
        const bytes = Buffer.concat(sent.map(([type, payload]) => encodeFrame(type, payload)))
        const reader = new FrameReader()
        const got = cut(bytes, at).flatMap((chunk) => reader.push(chunk))
        expect(got.map(({ type, payload }) => [type, new Uint8Array(payload)])).toEqual(sent)
      }),
    )
  })

  test('one byte at a time decodes to the same frame', () => {
    const reader = new FrameReader()
    const got = [...encodeFrame('S', Buffer.from([1, 0, 0, 0]))].flatMap((byte) =>
      reader.push(Buffer.from([byte])),
    )
    expect(got.map(decodeReport)).toEqual([{ type: 'started', pid: 1 }])
  })

  test('a frame over the bound is refused from its head alone, before its payload is held', () => {
    const head = Buffer.from([0x52, 0, 0, 0, 0])
    head.writeUInt32LE(maxPayloadBytes + 1, 1)
    expect(() => new FrameReader().push(head)).toThrow(/1048577 bytes/)
  })

  test('a frame over the bound is never sent', () => {
    expect(() => encodeOrder({ type: 'data', bytes: new Uint8Array(maxPayloadBytes + 1) })).toThrow(
      /1048577 bytes/,
    )
  })
})

describe('orders', () => {
  test('each has the bytes of the contract', () => {
    expect(hex({ type: 'cgroup', file: '/g' })).toBe('c\x03\0\0\0/g\0')
    expect(hex({ type: 'mount', source: '/a', staging: '0' })).toBe('m\x05\0\0\0/a\x000\0')
    expect(hex({ type: 'ids', uid: 1, gid: 0x102 })).toBe('u\x08\0\0\0\x01\0\0\0\x02\x01\0\0')
    expect(hex({ type: 'cover', path: '/p', isFolder: true })).toBe('v\x07\0\0\0\x01\0\0\0/p\0')
    expect(hex({ type: 'covered' })).toBe('C\0\0\0\0')
    expect(hex({ type: 'exec' })).toBe('x\0\0\0\0')
    expect(hex({ type: 'env', name: 'A', value: 'b=c' })).toBe('e\x06\0\0\0A=b=c\0')
    expect(hex({ type: 'file', mode: 0o600, path: '/f', content: Buffer.from('x') })).toBe(
      'f\x08\0\0\0\x80\x01\0\0/f\0x',
    )
    expect(hex({ type: 'counter', name: 'max_user_namespaces', value: 0n })).toBe(
      `n\x1c\0\0\0max_user_namespaces\0${'\0'.repeat(8)}`,
    )
    expect(hex({ type: 'door', path: '/d', proxyPort: 3128, pool: 256 })).toBe(
      'D\x0b\0\0\0/d\0\x38\x0c\0\0\0\x01\0\0',
    )
    expect(hex({ type: 'name', host: 'a.b', port: 443 })).toBe('N\x08\0\0\0\xbb\x01\0\0a.b\0')
    expect(hex({ type: 'options', oneExec: true, eofMs: 500, termMs: 3000 })).toBe(
      'o\x0c\0\0\0\x01\0\0\0\xf4\x01\0\0\xb8\x0b\0\0',
    )
  })

  test('a string with a NUL is refused, since it would end early on the other side', () => {
    expect(() => encodeOrder({ type: 'argv', value: 'a\0b' })).toThrow(/NUL/)
  })
})

describe('reports', () => {
  test('init’s four reports decode', () => {
    const ready = Buffer.alloc(40)
    ready.writeBigUInt64LE(7n, 0)
    ready.writeBigUInt64LE(9n, 8)
    ready.writeUInt32LE(2, 36)
    expect(decodeReport({ type: 'R', payload: ready })).toEqual({
      type: 'ready',
      targets: [
        { dev: 7n, ino: 9n, errno: 0 },
        { dev: 0n, ino: 0n, errno: 2 },
      ],
    })
    expect(decodeReport({ type: 'X', payload: Buffer.from('\x02\0\0\0exec\0/bin/x\0', 'latin1') })).toEqual({
      type: 'failed',
      errno: 2,
      step: 'exec',
      object: '/bin/x',
    })
    const exited = Buffer.alloc(32)
    exited.writeUInt32LE(3, 0)
    expect(decodeReport({ type: 'E', payload: exited })).toMatchObject({ type: 'exited', code: 3, signal: 0 })
  })

  test.each([
    ['an unknown type', 'Q', ''],
    ['an order sent back', 'G', '/bin/sh\0'],
    ['a short started', 'S', 'abc'],
    ['a long exited', 'E', 'x'.repeat(33)],
    ['a ragged ready', 'R', 'x'.repeat(19)],
    ['a failed without its strings', 'X', 'abcd'],
    ['a failed with an unended string', 'X', 'abcdstep\0object'],
  ])('%s is refused', (_, type, payload) => {
    expect(() => decodeReport({ type, payload: Buffer.from(payload, 'latin1') })).toThrow(/malformed/)
  })

  test('no bytes make the decoder throw anything but its own error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        try {
          new FrameReader().push(Buffer.from(bytes)).map(decodeReport)
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_SANDBOX_SETUP' })
        }
      }),
    )
  })
})
