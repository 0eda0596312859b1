import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClientHello, maxHelloBytes } from '../../src/egress/client-hello.ts'
import {
  encryptedHello,
  extension,
  helloMessage,
  realHello,
  records,
  serverName,
} from '../support/client-hello.ts'

/** Feeds pieces; gives the name, `more` where it never came to one, or the reason of the refusal. */
const read = (...pieces: readonly Uint8Array[]): string => {
  const hello = new ClientHello()
  try {
    for (const piece of pieces) {
      const name = hello.push(piece)
      if (name !== null) return name
    }
    return 'more'
  } catch (error) {
    return (error as Error).message
  }
}
const split = (bytes: Buffer, at: number): readonly Buffer[] => [bytes.subarray(0, at), bytes.subarray(at)]
const built = (...extensions: readonly Uint8Array[]): Buffer => records(helloMessage(extensions))

test('the hello of a real client gives its name, wherever segments cut it', async () => {
  const hello = await realHello('api.example.com')
  expect(read(hello)).toBe('api.example.com')
  for (let at = 1; at < hello.length; at++) expect(read(...split(hello, at))).toBe('api.example.com')
  expect(read(...Array.from(hello, (byte) => Uint8Array.of(byte)))).toBe('api.example.com')
})

test('the same wherever records cut it', async () => {
  const message = (await realHello('api.example.com')).subarray(5)
  for (let at = 1; at < message.length; at++) {
    expect(read(records(message, at))).toBe('api.example.com')
    expect(read(records(message, 1, at))).toBe('api.example.com')
  }
})

test('no hello is whole before its last byte', async () => {
  const hello = await realHello('api.example.com')
  for (let at = 0; at < hello.length; at++) expect(read(hello.subarray(0, at))).toBe('more')
})

test('a hello without a name, with an empty one, an address or a name that is none is refused', async () => {
  expect(read(await realHello())).toBe('sni-missing')
  expect(read(records(helloMessage(null)))).toBe('sni-missing')
  expect(read(built())).toBe('sni-missing')
  expect(read(built(encryptedHello()))).toBe('sni-missing')
  expect(read(built(serverName()))).toBe('no-client-hello')
  expect(read(built(serverName('')))).toBe('no-client-hello')
  for (const name of [
    '127.0.0.1',
    '[::1]',
    'a\0.example.com',
    'a..b',
    'a b',
    '\u00e4.com',
    'a.com\n',
    '0x7f.1',
  ])
    expect([name, read(built(serverName(name)))]).toEqual([name, 'sni-invalid'])
})

test('two names, two name extensions, or a name of another kind have no one meaning', () => {
  expect(read(built(serverName('a.com', 'b.com')))).toBe('no-client-hello')
  expect(read(built(serverName('a.com'), serverName('b.com')))).toBe('no-client-hello')
  expect(read(built(extension(0, Buffer.from([0, 4, 7, 0, 1, 97]))))).toBe('sni-invalid')
  expect(read(built(extension(0, Buffer.concat([Buffer.from([0, 4, 0, 0, 1, 97]), Buffer.from([1])]))))).toBe(
    'no-client-hello',
  )
})

test('the name beside an encrypted hello is the outer one', () => {
  expect(read(built(serverName('public.example'), encryptedHello()))).toBe('public.example')
})

test.each([
  ['an SSH banner', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['plain HTTP', 'GET / HTTP/1.1\r\nHost: allowed.com\r\n\r\n'],
  ['an SSL 2 hello', '\x80\x2e\x01\x00\x02'],
  ['an alert', '\x15\x03\x01\x00\x02\x02\x28'],
  ['application data', '\x17\x03\x03\x00\x05hello'],
  ['a server’s hello', '\x16\x03\x03\x00\x04\x02'],
  ['an empty fragment', '\x16\x03\x01\x00\x00'],
  ['a fragment that is too long', '\x16\x03\x01\x40\x01'],
  ['a version that never was', '\x16\x03\x05'],
  ['another protocol’s version', '\x16\x02'],
])('%s is no hello, and that shows at its first bytes', (_what, bytes) => {
  expect(read(Buffer.from(bytes, 'latin1'))).toBe('no-client-hello')
  expect(read(...Array.from(Buffer.from(bytes, 'latin1'), (byte) => Uint8Array.of(byte)))).toBe(
    'no-client-hello',
  )
})

test('a hello that is longer than any, or cut into more records than any, is refused', () => {
  const long = helloMessage([serverName('a.com'), extension(21, Buffer.alloc(maxHelloBytes))])
  expect(read(records(long, 16_000))).toBe('no-client-hello')
  const message = helloMessage([serverName('a.com'), extension(21, Buffer.alloc(60))])
  expect(read(records(message, ...Array.from({ length: message.length }, () => 1)))).toBe('no-client-hello')
  const full = helloMessage([serverName('a.com'), extension(21, Buffer.alloc(16_000))])
  expect(read(records(full, ...Array.from({ length: 63 }, () => 100)))).toBe('a.com')
})

test('bytes behind the hello in its own record are refused, behind the record they are the tunnel’s', () => {
  const message = helloMessage([serverName('a.com')])
  expect(read(records(Buffer.concat([message, Buffer.from([1])])))).toBe('no-client-hello')
  expect(read(Buffer.concat([records(message), Buffer.alloc(70_000, 23)]))).toBe('a.com')
})

test('whatever bytes come, the answer is a canonical name, a refusal or a wait; never anything else', async () => {
  const hello = await realHello('api.example.com')
  const mutated = fc
    .array(fc.tuple(fc.nat(hello.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 })
    .map((changes) => {
      const copy = Buffer.from(hello)
      for (const [at, byte] of changes) copy[at] = byte
      return copy
    })
  const bytes = fc.oneof(
    mutated,
    fc.uint8Array({ maxLength: 400 }).map((it) => Buffer.from(it)),
  )
  const words = ['more', 'no-client-hello', 'sni-missing', 'sni-invalid']
  fc.assert(
    fc.property(bytes, fc.nat(600), (it, at) => {
      const whole = read(it)
      expect(words.includes(whole) || /^[a-z0-9._-]+$/.test(whole)).toBe(true)
      expect(read(...split(it, at % (it.length + 1)))).toBe(whole)
    }),
    { numRuns: 20_000, interruptAfterTimeLimit: 5000 },
  )
})
