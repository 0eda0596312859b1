// What is behind a verification's doors: names that exist there alone, and the address that each has.
import type { Lookup } from '../../egress/resolve.ts'
import type {
  Door,
  DoorVerdict,
  EgressEvent,
  EgressGrant,
  EgressLimits,
  EgressWatch,
} from '../../schema/egress.ts'

const zone = 'sallyport.test'
const inwards = `inward.${zone}`
const turning = `turning.${zone}`
const refusedFirst = `refused-first.${zone}`
const refusedLast = `refused-last.${zone}`
const several: ReadonlyMap<string, readonly string[]> = new Map([
  [refusedFirst, ['0.0.0.0', '127.0.0.1']],
  [refusedLast, ['127.0.0.3', '0.0.0.0']],
])

/** What the supervisor says of a connection for which the doors are shut. */
export const doorsShut = 'doors-shut'

/** A name that is granted for the world outside, and has this one address. */
export const nameAt = (address: string): string =>
  `${address.replaceAll('.', '-').replaceAll(':', '_')}.${inwards}`

const addressIn = (name: string): string =>
  name
    .slice(0, -1 - inwards.length)
    .replaceAll('-', '.')
    .replaceAll('_', ':')

/** Names that nobody grants, for a door and a name server that know them all the same. */
export const strangers = [`not-granted.${zone}`, `other.${zone}`] as const

/** Names below a name. */
export const wildPattern = `*.wild.${zone}`

/** Names beside it, which no pattern is for. */
export const besides = ['', 'x', 'evil-'].map((before) => `${before}wild.${zone}`)

/** Grants of every door of a verification, beside those of its launch. */
export interface Behind {
  /** A name that leads to this machine: its address is what refuses it */
  readonly inward: EgressGrant
  /** Names that lead wherever `nameAt` says */
  readonly inwards: EgressGrant
  /** A name that leads to this machine, and to another address when it is asked for again */
  readonly turning: EgressGrant
  /** A name of two addresses, of which the first is refused whatever was granted, and the server has the second */
  readonly refusedFirst: EgressGrant
  /** The other way round, where at the first nobody listens: the refused one leads to the server, too */
  readonly refusedLast: EgressGrant
  /** The pattern */
  readonly wild: EgressGrant
  /** A name that is granted for TLS alone */
  readonly secure: EgressGrant
  /** The granted name, on the port of HTTP */
  readonly plain: EgressGrant
  /** A name that is granted, and for which the doors are shut where they shut at all */
  readonly shut: EgressGrant
  /** One for which they stand open when it is judged, and are shut before it is dialled */
  readonly closing: EgressGrant
  /** One for which they are shut once it is connected */
  readonly ending: EgressGrant
}

/** Returns them, all beside one grant for a server on this machine. */
export const behind = (grant: EgressGrant): Behind => ({
  inward: { ...grant, host: inwards, private: false },
  inwards: { ...grant, host: `*.${inwards}`, private: false },
  turning: { ...grant, host: turning },
  refusedFirst: { ...grant, host: refusedFirst },
  refusedLast: { ...grant, host: refusedLast },
  wild: { ...grant, host: wildPattern },
  secure: { ...grant, host: `secure.${zone}`, tls: true },
  plain: { ...grant, port: 80 },
  shut: { ...grant, host: `shut.${zone}` },
  closing: { ...grant, host: `closing.${zone}` },
  ending: { ...grant, host: `ending.${zone}` },
})

/** Doors that always stand open. */
export const alwaysOpen = (): DoorVerdict => ({ open: true })

/** Doors that shut, as those of a server that reaches out in calls alone: when they do is in the name. */
export const shutting = ({ shut, closing }: Behind): EgressWatch['mayConnect'] => {
  let asked = 0
  return ({ host }) => {
    const isShut = host === shut.host || (host === closing.host && asked++ > 0)
    return isShut ? { open: false, reason: doorsShut } : { open: true }
  }
}

/** Cuts a connection for which they are shut now. */
export const cutAtEnd = (door: Door | undefined, { ending }: Behind, { kind, host }: EgressEvent): void => {
  if (kind === 'opened' && host === ending.host)
    setImmediate(() => door?.cut((it) => it.host === ending.host, doorsShut))
}

/** Every name leads to this machine, so that only judgement is between, but for those that say where they lead. */
export const lookup = (): Lookup => {
  let turns = 0
  return (host) => {
    if (host.endsWith(`.${inwards}`)) return Promise.resolve([addressIn(host)])
    return Promise.resolve(several.get(host) ?? [host === turning && turns++ > 0 ? '127.0.0.2' : '127.0.0.1'])
  }
}

/** Why a connection ended that had no time, or no judgement: another one would have gone another way. */
export const isOfTime = (reason: string | null): boolean =>
  /-timeout$|-late$|^(idle|too-long|too-many|failed|unreachable|internal|client-left|handshake)$/.test(
    reason ?? '',
  )

/** What no attempt comes near: whoever waits at such a door gives up before, and says so. */
export const ample: EgressLimits = {
  connections: 64,
  connectMs: 60_000,
  handshakeMs: 60_000,
  idleMs: 60_000,
  totalMs: 120_000,
  bytesUp: 1_048_576,
  bytesDown: 1_048_576,
}

/** What is soon used up. */
export const scant: EgressLimits = {
  connections: 16,
  connectMs: 2000,
  handshakeMs: 500,
  idleMs: 700,
  totalMs: 1500,
  bytesUp: 700,
  bytesDown: 2000,
}
