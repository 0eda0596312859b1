// What a sandbox's own relay refused inside, told as it comes: a claim, bounded and escaped like every word from there.
import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import { LineSplitter } from '../lib/lines.ts'
import type { EgressEvent } from '../schema/egress.ts'
import { parsePort } from './authority.ts'
import { escaped } from './escape.ts'
import { noticeBytes } from './limits.ts'
import { Refusal } from './refusal.ts'

/** What was tried, and why it went nowhere. */
export type Attempt = Pick<EgressEvent, 'host' | 'port' | 'reason' | 'count'>

/** Reads notices until the socket ends or says something else, and tells each; throws bad-notice for the latter. */
export async function readNotices(socket: Socket, tell: (attempt: Attempt) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const splitter = new LineSplitter(noticeBytes, {
    line: (_bytes, text, start, end) => tell(attemptOf(text.slice(start, end))),
    overlong: () => {
      throw new Refusal('bad-notice')
    },
    overlongEnd: () => undefined,
  })
  const take = (chunk: Buffer): void => {
    try {
      splitter.push(chunk)
    } catch (error) {
      socket.off('data', take) // what was read already may follow in this turn
      reject(Refusal.from(error))
    }
  }
  socket.on('data', take)
  socket.once('close', resolve).once('end', resolve).resume()
  try {
    await promise
  } finally {
    socket.destroy()
  }
}

function attemptOf(line: string): Attempt {
  const [word = '', what = '', more = '', ...rest] = line.split(' ')
  if (word === 'socket' && /^socket( [0-9]{1,10}){3}$/.test(line))
    return attempt(`socket:${kindOf(Number(what), Number(more), Number(rest[0]))}`, '', null)
  if (rest.length > 0 || line.endsWith(' ')) throw new Refusal('bad-notice')
  const address = isIP(what) > 0 && !what.includes('%') ? what : null // no zone: it may have any length, and letters
  const port = parsePort(more)
  if ((word === 'name' || word === 'pool') && what !== '' && /^[0-9]{1,5}$/.test(more))
    return attempt(word === 'name' ? 'name-not-listed' : 'pool-exhausted', shown(what), null)
  if ((word === 'tcp' || word === 'udp') && address !== null && (port !== null || more === '0'))
    return attempt(word === 'tcp' ? 'no-door' : 'udp', address, port)
  if (word === 'local' && what !== '' && more === '')
    return attempt('local', what.split('/').map(shown).join('/').slice(0, 253), null)
  if (word === 'full' && what !== '' && port !== null) return attempt('too-many', shown(what), port)
  if (word === 'icmp' && address !== null && more === '') return attempt('icmp', address, null)
  if (word === 'other' && more === '' && /^[0-9]{1,5}$/.test(what))
    return attempt(`protocol:${what}`, '', null)
  if (word === 'dropped' && more === '' && /^[1-9][0-9]{0,8}$/.test(what))
    return attempt('not-told', '', null, Number(what))
  throw new Refusal('bad-notice')
}

const attempt = (reason: string, host: string, port: number | null, count = 1): Attempt => ({
  reason,
  host,
  port,
  count,
})

/** A word for the kind of socket that was asked for: its family, or what a socket of the internet's families is. */
const kindOf = (family: number, type: number, protocol: number): string => {
  if (family !== inet && family !== inet6) return families[family] ?? `family-${family}`
  if (type === raw) return 'raw'
  return protocols[protocol] ?? `protocol-${protocol}`
}

const [inet, inet6, raw] = [2, 10, 3]
const families: Readonly<Record<number, string>> = {
  15: 'key',
  16: 'netlink',
  17: 'packet',
  21: 'rds',
  29: 'can',
  30: 'tipc',
  31: 'bluetooth',
  38: 'alg',
  40: 'vsock',
  44: 'xdp',
}
const protocols: Readonly<Record<number, string>> = {
  1: 'ping',
  58: 'ping',
  132: 'sctp',
  136: 'udplite',
  262: 'mptcp',
}

/** The relay escaped it: \xNN is kept, and whatever else should have been is escaped here. */
const shown = (name: string): string =>
  name.replace(/\\x[0-9a-f]{2}|[^]/gi, (it) => (it.length === 4 ? it : escaped(it))).slice(0, 253)
