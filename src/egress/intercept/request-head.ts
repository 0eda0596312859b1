// Judges the head of a request: what it says must have one meaning only, and concern the host that was judged.
import { Refusal } from './refusal.ts'

/** A header, or all of them, as they were written. */
export type Header = readonly [name: string, value: string]

/** What node:http read of a request. */
export interface GivenHead {
  readonly method: string
  readonly url: string
  readonly httpVersion: string
  readonly rawHeaders: readonly string[]
}

/** Where the request must be going. */
export interface HeadTarget {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  /** Lower-case names of headers that may hold a credential: they must not come twice */
  readonly credentialHeaders: readonly string[]
  readonly mayUpgrade: boolean
  readonly mostHeaders: number
}

/** A request as it may go up, before anything is swapped in it. */
export interface RequestHead {
  readonly method: string
  /** In origin form */
  readonly path: string
  /** What goes up: none that concerns this connection alone, and ours for `Host` and `Accept-Encoding` */
  readonly headers: readonly Header[]
  /** What does not go up, which must hold nothing of ours either */
  readonly dropped: readonly Header[]
  readonly isUpgrade: boolean
  /** Whether a body is chunked; else it has the `Content-Length` in `headers`, or there is none */
  readonly isChunked: boolean
}

// Those of RFC 9110 7.6.1 and its like; `Accept-Encoding` is ours so that answers can be read.
const dropped: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'sec-websocket-extensions',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Those that frame a request, route it, or say who asks. */
const telling: ReadonlySet<string> = new Set([...dropped, 'authorization', 'content-length', 'expect'])

/** What a client may say of its connection. Any other word would name a header that we are to drop: it may not. */
const connectionOptions: ReadonlySet<string> = new Set(['close', 'keep-alive', 'te', 'upgrade'])

/**
 * Returns the head that may go up; throws a Refusal for what may not.
 *
 * llhttp, as strict as node:http runs it, settles what bytes mean: it was tried with CL with TE, several lengths, folded
 * lines, bare CR and LF, NUL, odd chunk sizes and line ends in their extensions, and refuses them all; extensions without
 * these are read over, and stay here. What it lets pass because it is not wrong for a server is judged here: HTTP/1.0, a second Host, authorities in the request line, TRACE, doubled credentials,
 * and words in Connection.
 */
export const judgeRequest = (given: GivenHead, target: HeadTarget): RequestHead => {
  const { method, httpVersion, rawHeaders } = given
  if (httpVersion !== '1.1') throw new Refusal(505, 'http-version', 'only HTTP/1.1 is spoken here')
  if (/^(TRACE|TRACK|CONNECT)$/i.test(method)) throw new Refusal(405, 'method', `${method} is not passed on`)
  const headers = pairs(rawHeaders)
  if (headers.length > target.mostHeaders) throw new Refusal(431, 'headers', 'there are too many headers')
  const path = judgePath(given, target)
  const all = (name: string): readonly string[] =>
    headers.filter(([it]) => it.toLowerCase() === name).map(([, value]) => value)

  const [host, ...otherHosts] = all('host')
  if (host === undefined || otherHosts.length > 0) throw malformed('expected one Host header')
  if (!isAuthority(host, target)) throw misdirected('Host')
  const twin = headers.map(([name]) => twinOf(name.toLowerCase(), target)).find((it) => it !== null)
  if (twin !== undefined) throw malformed(`a header is ${twin} to hosts that read _ as -`)
  for (const name of ['authorization', ...target.credentialHeaders])
    if (all(name).length > 1) throw malformed(`header ${name} came twice`)
  const lengths = all('content-length')
  const codings = all('transfer-encoding')
  if (lengths.length + codings.length > 1 || lengths.some((value) => !/^(0|[1-9]\d{0,14})$/.test(value)))
    throw malformed('the body has no certain length')
  if (codings.some((value) => value.toLowerCase() !== 'chunked'))
    throw new Refusal(501, 'framing', 'a body may be chunked and nothing else')
  for (const option of words(all('connection')))
    if (!connectionOptions.has(option)) throw malformed('Connection names a header')
  const isUpgrade = judgeUpgrade(method, all('upgrade'), target, lengths.length + codings.length > 0)
  if (all('expect').some((value) => value.toLowerCase() !== '100-continue'))
    throw new Refusal(417, 'expectation', 'nothing but 100-continue can be expected')

  const up = headers.filter(([name]) => !dropped.has(name.toLowerCase()))
  return {
    method,
    path,
    headers: [
      ['Host', authorityOf(target)],
      ...up,
      ['Accept-Encoding', 'identity'],
      ...(isUpgrade
        ? ([
            ['Connection', 'Upgrade'],
            ['Upgrade', 'websocket'],
          ] as const)
        : []),
      ...(codings.length > 0 ? ([['Transfer-Encoding', 'chunked']] as const) : []),
    ],
    dropped: headers.filter(([name]) => dropped.has(name.toLowerCase())),
    isUpgrade,
    isChunked: codings.length > 0,
  }
}

/** The raw headers of node:http in pairs. */
export const pairs = (raw: readonly string[]): readonly Header[] =>
  Array.from(
    { length: raw.length / 2 },
    (_, index) => [raw[index * 2] ?? '', raw[index * 2 + 1] ?? ''] as const,
  )

const judgePath = ({ method, url }: GivenHead, target: HeadTarget): string => {
  if (!/^[!-~]+$/.test(url) || url.includes('#'))
    throw malformed('the request’s target has a letter that it may not have')
  if (url.startsWith('/')) return url
  if (url === '*' && method === 'OPTIONS') return url
  const [, scheme = '', authority = '', path = ''] = /^([a-z]+):\/\/([^/?]*)(.*)$/i.exec(url) ?? []
  if (scheme === '') throw malformed('the request’s target is no path')
  if (scheme.toLowerCase() !== (target.isTls ? 'https' : 'http') || !isAuthority(authority, target))
    throw misdirected('the request’s target')
  return path.startsWith('/') ? path : `/${path}`
}

const judgeUpgrade = (
  method: string,
  protocols: readonly string[],
  { mayUpgrade }: HeadTarget,
  hasBody: boolean,
): boolean => {
  if (protocols.length === 0) return false
  const isWebsocket = protocols.length === 1 && protocols[0]?.toLowerCase() === 'websocket'
  if (!mayUpgrade || !isWebsocket) throw new Refusal(403, 'upgrade', 'this upgrade is not granted')
  if (method !== 'GET' || hasBody) throw malformed('an upgrade is a GET without a body')
  return true
}

// Gateways of the CGI kind (WSGI, Rack, PHP) know no difference between Transfer_Encoding and Transfer-Encoding.
const twinOf = (name: string, { credentialHeaders }: HeadTarget): string | null => {
  if (!name.includes('_') || credentialHeaders.includes(name)) return null
  const other = name.replaceAll('_', '-')
  return telling.has(other) || credentialHeaders.includes(other) ? other : null
}

const words = (values: readonly string[]): readonly string[] =>
  values
    .flatMap((value) => value.split(','))
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== '')

const defaultPort = (isTls: boolean): number => (isTls ? 443 : 80)

const authorityOf = ({ host, port, isTls }: HeadTarget): string =>
  port === defaultPort(isTls) ? host : `${host}:${port}`

const isAuthority = (given: string, { host, port, isTls }: HeadTarget): boolean => {
  const [, name = '', written = ''] = /^([^:]+?)\.?(?::(\d{1,5}))?$/.exec(given) ?? []
  return name.toLowerCase() === host && (written === '' ? defaultPort(isTls) : Number(written)) === port
}

const malformed = (line: string): Refusal => new Refusal(400, 'malformed', line)
const misdirected = (what: string): Refusal =>
  new Refusal(421, 'misdirected', `${what} does not name the host that this connection is for`)
