// Puts secrets in the place of placeholders in a request's head, where the entry says so, and nowhere else.
import type { Swap, SwapPlace, SwapPort } from '../../schema/credentials.ts'
import type { EgressEndpoint } from '../../schema/egress.ts'
import { credentialRefused } from './refusal.ts'
import { type GivenHead, type Header, pairs, type RequestHead } from './request-head.ts'

/** What was swapped, and until when it may be used. */
export interface Swapped {
  readonly credential: string
  readonly until: AbortSignal
}

export interface SwappedHead {
  readonly path: string
  readonly headers: readonly Header[]
  readonly swapped: readonly Swapped[]
}

/** Takes a value for what stands in that place; throws a Refusal where it stands for nothing. */
export type Exchange = (placeholder: string, place: SwapPlace) => string

/** Returns a function that asks for one value, and notes in `swapped` what it gave. */
export const exchangeFor =
  (port: SwapPort, target: EgressEndpoint, swapped: Swapped[]): Exchange =>
  (placeholder, place) => {
    const swap: Swap = port.swap(placeholder, target, place)
    if (swap.state === 'blocked') throw credentialRefused(`credential-${swap.reason}`)
    // The last look before the wire: whatever a source gave, it ends no header
    if (/[\0\r\n]/.test(swap.value)) throw credentialRefused('credential-malformed')
    swapped.push({ credential: swap.credential, until: swap.until })
    return swap.value
  }

/**
 * Returns the head with its placeholders swapped: in headers that the entry names, in decoded Basic, and in the query
 * where it says so. Throws a Refusal, and nothing goes up, where one stands anywhere else or the secret itself is in it.
 * It is the last rewrite of a head.
 */
export const swapHead = (port: SwapPort, target: EgressEndpoint, head: RequestHead): SwappedHead => {
  const leaked = port.watch(target, 'passes')(Buffer.from(textOf(head), 'latin1'))
  if (leaked !== null) throw credentialRefused(`credential-${leaked}`)
  const swapped: Swapped[] = []
  const exchange = exchangeFor(port, target, swapped)
  const { placeholders } = port
  for (const text of [head.method, ...head.headers.map(([name]) => name), ...head.dropped.flat()])
    replaceAll(text, placeholders, (it) => exchange(it, { in: 'elsewhere' }))
  const [, before = '', query = ''] = /^([^?]*)(.*)$/.exec(head.path) ?? []
  replaceAll(before, placeholders, (it) => exchange(it, { in: 'elsewhere' }))
  const path =
    before + replaceAll(query, placeholders, (it) => encodeURIComponent(exchange(it, { in: 'query' })))
  const headers = head.headers.map(([name, value]): Header => [
    name,
    swapHeader(name.toLowerCase(), value, placeholders, exchange),
  ])
  return { path, headers: swapped.length === 0 ? headers : forTheWhole(headers), swapped }
}

/**
 * Headers that do not ask for a part of an answer: with the secret in the request, two parts could bring back half of it each,
 * and in neither would it be found.
 */
export const forTheWhole = (headers: readonly Header[]): readonly Header[] =>
  headers.filter(([name]) => !partial.has(name.toLowerCase()))

const partial: ReadonlySet<string> = new Set(['range', 'if-range'])

/**
 * Throws a Refusal where a head that is refused anyway has something in it that is told of: the secret itself, a placeholder
 * of another sandbox, or one of ours where it stands for nothing. What would be swapped is dropped.
 */
export const screenRefused = (
  port: SwapPort,
  target: EgressEndpoint,
  { method, url, rawHeaders }: GivenHead,
): void => {
  const text = [method, url, ...rawHeaders].join('\n')
  const leaked = port.watch(target, 'passes')(Buffer.from(text, 'latin1'))
  if (leaked !== null) throw credentialRefused(`credential-${leaked}`)
  const exchange = exchangeFor(port, target, [])
  const headers = pairs(rawHeaders)
  for (const part of [method, url, ...headers.map(([name]) => name)])
    replaceAll(part, port.placeholders, (it) => exchange(it, { in: 'elsewhere' }))
  for (const [name, value] of headers)
    replaceAll(value, port.placeholders, (it) => exchange(it, { in: 'header', name: name.toLowerCase() }))
}

const textOf = ({ method, path, headers, dropped }: RequestHead): string =>
  [method, path, ...[...headers, ...dropped].flatMap(([name, value]) => [name, value])].join('\n')

const swapHeader = (
  name: string,
  value: string,
  placeholders: readonly string[],
  exchange: Exchange,
): string => {
  const [, scheme = '', encoded = ''] = /^(basic +)([A-Za-z0-9+/_-]+={0,2})[ \t]*$/i.exec(value) ?? []
  if (scheme !== '') {
    const place: SwapPlace = name === 'authorization' ? { in: 'basic' } : { in: 'elsewhere' }
    const decoded = Buffer.from(encoded, 'base64').toString('latin1')
    const filled = replaceAll(decoded, placeholders, (it) => latin1(exchange(it, place)))
    if (filled !== decoded) return scheme + Buffer.from(filled, 'latin1').toString('base64')
  }
  return replaceAll(value, placeholders, (it) => latin1(exchange(it, { in: 'header', name })))
}

// node:http writes headers letter by letter as bytes: a value's UTF-8 goes out as it is.
const latin1 = (value: string): string => Buffer.from(value).toString('latin1')

const replaceAll = (
  text: string,
  placeholders: readonly string[],
  by: (placeholder: string) => string,
): string =>
  placeholders
    .filter((it) => text.includes(it))
    .reduce((rest, placeholder) => {
      const value = by(placeholder)
      return rest.split(placeholder).join(value)
    }, text)
