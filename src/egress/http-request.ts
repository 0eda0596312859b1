// A plain HTTP request, judged and written anew for its one target: what asks the next hop for something stays here.
import type { EgressEndpoint } from '../schema/egress.ts'
import { parseAuthority } from './authority.ts'
import type { Head } from './http-head.ts'
import { framingOf } from './http-framing.ts'
import type { Framing } from './http-framing.ts'
import { Refusal } from './refusal.ts'

/** The port of `http:` where none is written. */
export const httpPort = 80

/** What goes upstream: a head in origin form that asks for the connection's end after it, and how its body ends. */
export interface Forwarded {
  readonly head: string
  readonly framing: Framing
  /** What stays here, as text */
  readonly dropped: string
}

const hopByHop = new Set(['connection', 'keep-alive', 'te', 'trailer', 'upgrade', 'http2-settings'])
/** A connection's own fields cannot be these: whoever names them would have the next hop read another request. */
const endToEnd = new Set(['host', 'content-length', 'transfer-encoding', 'authorization', 'cookie'])
const refusedMethods = new Set(['TRACE', 'TRACK'])

/** Returns the target of CONNECT; its Host, where there is one, says the same. */
export function connectTarget(head: Head): EgressEndpoint {
  const target = parseAuthority(head.target, null)
  if (target === null) throw new Refusal('name-invalid')
  if (head.fields.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name)))
    throw new Refusal('bad-request')
  const hosts = valuesOf(head, 'host')
  if (hosts.length > 1) throw new Refusal('bad-request')
  if (hosts.length === 1 && !isSame(target, parseAuthority(hosts[0] ?? '', target.port)))
    throw new Refusal('host-mismatch')
  return target
}

/** Returns the target of an absolute-form request (`GET http://host/path`), its Host not yet compared. */
export function absoluteTarget(head: Head): EgressEndpoint {
  refuseMethod(head)
  const [, authority] = /^http:\/\/([^/?#]*)(?:[/?][^#]*)?$/i.exec(head.target) ?? []
  if (authority === undefined) throw new Refusal('bad-request')
  const target = parseAuthority(authority, httpPort)
  if (target === null) throw new Refusal('name-invalid')
  return target
}

/**
 * Returns the request as the target gets it. Throws host-mismatch where Host or an absolute form names another,
 * method-refused for TRACE, TRACK and CONNECT, bad-request where its body's length has two readings.
 */
export function forwarded(head: Head, target: EgressEndpoint): Forwarded {
  refuseMethod(head)
  const hosts = valuesOf(head, 'host')
  if (hosts.length !== 1) throw new Refusal('bad-request')
  const path = originForm(head, target)
  if (!isSame(target, parseAuthority(hosts[0] ?? '', httpPort))) throw new Refusal('host-mismatch')
  const framing = framingOf(head)
  const named = connectionOptions(head)
  const stays = ([name]: readonly [name: string, value: string]): boolean => {
    const lower = name.toLowerCase()
    return hopByHop.has(lower) || named.has(lower) || lower.startsWith('proxy-') || lower === 'host'
  }
  const fields = head.fields.filter((field) => !stays(field))
  const host = target.port === httpPort ? target.host : `${target.host}:${target.port}`
  const lines = [['Host', host], ...fields, ['Connection', 'close']].map(
    ([name, value]) => `${name}: ${value}`,
  )
  return {
    head: [`${head.method} ${path} HTTP/${head.version}`, ...lines, '', ''].join('\r\n'),
    framing,
    dropped: textOf(head.fields.filter(stays)),
  }
}

/**
 * Returns how the body of a request ends that goes up as it was written; throws what `forwarded` does. A Host without a
 * port means the target's.
 */
export function judgedFraming(head: Head, target: EgressEndpoint): Framing {
  refuseMethod(head)
  const hosts = valuesOf(head, 'host')
  if (hosts.length !== 1) throw new Refusal('bad-request')
  originForm(head, target)
  if (!isSame(target, parseAuthority(hosts[0] ?? '', target.port))) throw new Refusal('host-mismatch')
  connectionOptions(head)
  return framingOf(head)
}

/** Fields as text. */
export const textOf = (fields: Head['fields']): string => fields.flat().join('\n')

/** Whether the request asks for another protocol on its connection. */
export const upgrades = (head: Head): boolean =>
  valuesOf(head, 'upgrade').length > 0 && connectionOptions(head).has('upgrade')

function refuseMethod({ method }: Head): void {
  if (refusedMethods.has(method) || method === 'CONNECT') throw new Refusal('method-refused')
}

function originForm({ target: text, method }: Head, target: EgressEndpoint): string {
  if (text.includes('#')) throw new Refusal('bad-request')
  if (text.startsWith('/') || (text === '*' && method === 'OPTIONS')) return text
  const [, authority, path] = /^http:\/\/([^/?]*)(.*)$/i.exec(text) ?? []
  if (authority === undefined || path === undefined) throw new Refusal('bad-request')
  if (!isSame(target, parseAuthority(authority, httpPort))) throw new Refusal('host-mismatch')
  return path.startsWith('/') ? path : `/${path}`
}

/** Names that the client calls its connection's own; naming a field that decides about the request is refused. */
function connectionOptions(head: Head): ReadonlySet<string> {
  const options = valuesOf(head, 'connection').flatMap((it) =>
    it.split(',').map((name) => name.trim().toLowerCase()),
  )
  if (options.some((it) => endToEnd.has(it))) throw new Refusal('bad-request')
  return new Set(options)
}

const valuesOf = (head: Head, wanted: string): readonly string[] =>
  head.fields.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)

const isSame = (target: EgressEndpoint, other: EgressEndpoint | null): boolean =>
  other !== null && other.host === target.host && other.port === target.port
