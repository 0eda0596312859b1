// What is said at a sandbox's door before anybody is trusted with more: its first line, and the notices of the relay.
import { equal, match, ok } from 'node:assert/strict'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { parseAuthority } from '../../../src/egress/authority.ts'
import { readNotices } from '../../../src/egress/notices.ts'
import { openingLine } from '../../../src/egress/opening.ts'
import { Refusal } from '../../../src/egress/refusal.ts'
import { canonicalHost } from '../../../src/lib/host-name.ts'
import { decodeReport, FrameReader } from '../../../src/sandbox/control/control.ts'
import { SallyportError } from '../../../src/errors.ts'
import type { Target } from '../target.ts'

/** The line that opens a connection, and what a proxy's client calls its target. */
export const opening: Target = {
  name: 'opening',
  seeds: ['\x05SP1 connect api.example.test 443\nrest', '\x00SP1 proxy\n', '\x03SP1 notices\nname a 1\n'],
  words: [
    'SP1 ',
    'connect ',
    'proxy\n',
    'notices\n',
    'xn--',
    '.',
    ':443',
    '65536',
    '0',
    '\xe4',
    '\u212a',
    '127.0.0.1',
    '[::1]',
    '\n',
    '@',
  ],
  run(bytes) {
    const at = bytes[0] ?? 0
    const stream = bytes.subarray(1)
    const outcome = (pieces: readonly Buffer[]): string => {
      const read = openingLine()
      let before = 0
      try {
        for (const piece of pieces) {
          const found = read(piece)
          if (found !== null) return JSON.stringify([found.value, before + found.used])
          before += piece.length
        }
        return 'more'
      } catch (error) {
        ok(error instanceof Refusal, String(error))
        return 'refused'
      }
    }
    const whole = outcome([stream])
    // A line that is too long may be refused sooner where it comes in pieces.
    const cut = outcome([stream.subarray(0, at), stream.subarray(at)])
    if (cut !== 'refused' && whole !== 'refused') equal(cut, whole)
    const text = stream.toString()
    const host = canonicalHost(text)
    if (host !== null) equal(canonicalHost(host), host)
    if (host !== null) equal(new URL(`http://${host}/`).hostname, host)
    const authority = parseAuthority(text, null)
    if (authority !== null)
      equal(parseAuthority(`${authority.host}:${authority.port}`, null)?.port, authority.port)
  },
}

/** The relay's lines: whoever is in the sandbox may write them. */
export const notices: Target = {
  name: 'notices',
  seeds: [
    'name a.b 1\npool x\\x20y 28\ntcp 1.2.3.4 5\nudp 2001:db8::1 53\n',
    'icmp 1.2.3.4\nother 132\nsocket 16 3 0\nfull a.test 443\ndropped 7\n',
  ],
  words: [
    'name ',
    'pool ',
    'tcp ',
    'udp ',
    'icmp ',
    'other ',
    'socket ',
    'full ',
    'dropped ',
    '\n',
    ' ',
    '\\x0a',
    '\x1b',
    '65536',
    '::',
    '%lo',
  ],
  async run(bytes) {
    const socket = new PassThrough()
    const told: string[] = []
    socket.end(bytes)
    try {
      // Of a socket it takes what every stream has.
      await readNotices(socket as unknown as Socket, ({ reason, host, port, count }) => {
        ok(reason !== null && host !== null)
        match(reason, /^[a-z0-9:-]{1,64}$/)
        match(host, /^[\x21-\x7e]{0,253}$/)
        ok(port === null || (Number.isInteger(port) && port >= 0 && port <= 65_535))
        ok(Number.isSafeInteger(count) && count >= 1)
        told.push(reason)
      })
    } catch (error) {
      ok(error instanceof Refusal, String(error))
    }
    ok(told.length <= bytes.filter((byte) => byte === 10).length, 'more was told than there are lines')
  },
}

/** What init says over the control channel, cut as the first byte says. */
export const reports: Target = {
  name: 'reports',
  seeds: [
    '\x03S\x04\0\0\0\x01\0\0\0X\x0d\0\0\0\x02\0\0\0exec\0/b\0R\0\0\0\0',
    `\x40E\x20\0\0\0${'\x01'.repeat(32)}R\x14\0\0\0${'\x02'.repeat(20)}`,
  ],
  words: [
    'R',
    'S\x04\0\0\0',
    'E\x20\0\0\0',
    'X\x08\0\0\0',
    '\0',
    '\xff\xff\xff\xff',
    '\0\0\x10\0',
    '\x01\0\x10\0',
  ],
  run(bytes) {
    const step = 1 + ((bytes[0] ?? 0) % 64)
    const stream = bytes.subarray(1)
    const outcome = (size: number): string => {
      const reader = new FrameReader()
      let text = ''
      try {
        for (let at = 0; at < stream.length; at += size)
          for (const frame of reader.push(stream.subarray(at, at + size)))
            text += JSON.stringify(decodeReport(frame), (_key, value: unknown) =>
              typeof value === 'bigint' ? String(value) : value,
            )
      } catch (error) {
        ok(error instanceof SallyportError && error.code === 'ERR_SANDBOX_SETUP', String(error))
      }
      return text
    }
    // In one piece a frame behind it that is wrong takes the first ones along.
    const whole = outcome(stream.length)
    ok(outcome(step).startsWith(whole))
  },
}
