// What is said at a sandbox's door before anybody is trusted with more: its first line, and the notices of the relay.
import { deepStrictEqual, equal, match, ok } from 'node:assert/strict'
import { isIP, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { parseAuthority } from '../../../src/egress/authority.ts'
import { noticeBytes } from '../../../src/egress/limits.ts'
import { type Attempt, readNotices } from '../../../src/egress/notices.ts'
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

/** The forms that a notice has, each with what is told of it. */
const forms: readonly (readonly [form: RegExp, reason: string | null])[] = [
  [/^name (?<host>[^ ]+) [0-9]{1,5}$/s, 'name-not-listed'],
  [/^pool (?<host>[^ ]+) [0-9]{1,5}$/s, 'pool-exhausted'],
  [/^tcp (?<address>[^ ]+) (?<port>0|[1-9][0-9]{0,4})$/s, 'no-door'],
  [/^udp (?<address>[^ ]+) (?<port>0|[1-9][0-9]{0,4})$/s, 'udp'],
  [/^icmp (?<address>[^ ]+)$/s, 'icmp'],
  [/^local (?<host>[^ ]+)$/s, 'local'],
  [/^full (?<host>[^ ]+) (?<port>[1-9][0-9]{0,4})$/s, 'too-many'],
  [/^other [0-9]{1,5}$/s, null],
  [/^socket [0-9]{1,10} [0-9]{1,10} [0-9]{1,10}$/s, null],
  [/^dropped (?<count>[1-9][0-9]{0,8})$/s, 'not-told'],
]

/** What a line of the relay's says; null where it says nothing. `host` is null where more than plain letters make it. */
function noticeOf(line: string) {
  for (const [form, reason] of forms) {
    const { groups = {}, 0: found } = form.exec(line) ?? {}
    if (found === undefined) continue
    const { address, port = '0', count = '1' } = groups
    if (isIP(address ?? '::') === 0 || address?.includes('%') === true || Number(port) > 65_535) return null
    const host = address ?? groups['host'] ?? ''
    const isPlain = address !== undefined || (/^[A-Za-z0-9._:*-]*$/.test(host) && host.length <= 253)
    return { reason, host: isPlain ? host : null, port: Number(port) || null, count: Number(count) }
  }
  return null
}

/** The relay's lines: whoever is in the sandbox may write them. */
export const notices: Target = {
  name: 'notices',
  seeds: [
    'name a.b 1\npool x\\x20y 28\ntcp 1.2.3.4 5\nudp 2001:db8::1 53\n',
    'icmp 1.2.3.4\nother 132\nsocket 16 3 0\nfull a.test 443\ndropped 7\nlocal /run/x\\x20y\n',
    `name ${'a'.repeat(300)} 1\nlocal ${'/\x1b'.repeat(150)}\npool ${'\xe4'.repeat(260)} 1\n`,
    'tcp 1.2.3.4 65536\n',
    'udp nobody 53\n',
    'name a.b 1 2 3\n',
  ],
  words: [
    'name ',
    'pool ',
    'tcp ',
    'udp ',
    'icmp ',
    'local ',
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
    const lines = bytes.toString('latin1').split('\n').slice(0, -1)
    const said = lines.map((line) => (line.length > noticeBytes ? null : noticeOf(line)))
    const wrong = said.indexOf(null)
    const socket = new PassThrough()
    const told: Attempt[] = []
    const step = 1 + (bytes.length % 61)
    for (let at = 0; at < bytes.length; at += step) socket.write(bytes.subarray(at, at + step))
    socket.end()
    let isRefused = false
    try {
      // Of a socket it takes what every stream has. What is thrown where it tells would be a refusal to it.
      await readNotices(socket as unknown as Socket, (attempt) => told.push(attempt))
    } catch (error) {
      ok(error instanceof Refusal, String(error))
      isRefused = true
    }
    ok(isRefused || wrong < 0, `${lines[wrong]} is read`)
    equal(told.length, wrong < 0 ? lines.length : wrong, 'other lines were told than there are')
    for (const [n, { reason, host, port, count }] of told.entries()) {
      match(reason ?? '', /^[a-z0-9:-]{1,64}$/)
      match(host ?? '-', /^[A-Za-z0-9._:*\\/-]{0,253}$/)
      const { reason: known, host: plain, ...rest } = said[n] ?? {}
      deepStrictEqual({ port, count }, rest)
      if (typeof known === 'string') equal(reason, known)
      if (typeof plain === 'string') equal(host, plain)
    }
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
