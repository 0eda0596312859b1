// `host:port` as a client writes it: in CONNECT, in an absolute URL, in Host, and on the door's first line.
import { canonicalHost } from '../lib/host-name.ts'
import type { EgressEndpoint } from '../schema/egress.ts'

/** Returns the port, or null where the text is not an exact decimal from 1 to 65535: no sign, no zero in front, no blank. */
export function parsePort(text: string): number | null {
  if (!/^[1-9][0-9]{0,4}$/.test(text)) return null
  const port = Number(text)
  return port <= 65_535 ? port : null
}

/** Returns the endpoint of a name and a port, or null where one of the two is not what it should be. */
export function parseEndpoint(name: string, port: string): EgressEndpoint | null {
  const host = canonicalHost(name)
  const number = parsePort(port)
  return host === null || number === null ? null : { host, port: number }
}

/** Returns the endpoint of `host:port`; without a port it is `fallback`, and null where there is none to fall back to. */
export function parseAuthority(text: string, fallback: number | null): EgressEndpoint | null {
  const colon = text.indexOf(':')
  if (colon >= 0) return parseEndpoint(text.slice(0, colon), text.slice(colon + 1))
  return fallback === null ? null : parseEndpoint(text, String(fallback))
}
