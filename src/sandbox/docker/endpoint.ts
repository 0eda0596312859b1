// Where the engine is: $DOCKER_HOST, a context of the docker CLI, or the socket that it listens on by itself.
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIPv4, isIPv6 } from 'node:net'
import { isAbsolute, join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { isMissing } from '../../lib/missing.ts'
import { parseJson } from '../../lib/parse-json.ts'

/** What proves who is who on a TLS connection, PEM; the engine's certificate is always checked. */
export interface EngineTls {
  readonly ca: Buffer | null
  readonly cert: Buffer | null
  readonly key: Buffer | null
}

/** One engine's address; `from` says in a person's words where it was found. */
export type Endpoint = { readonly from: string } & (
  | { readonly kind: 'unix'; readonly socketPath: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: EngineTls | null }
  | { readonly kind: 'ssh'; readonly destination: string; readonly port: number | null }
)

type Environment = Readonly<Record<string, string | undefined>>

const usualSocket = '/var/run/docker.sock'
const usualPort = { plain: 2375, tls: 2376 }

/**
 * Finds the engine as the docker CLI does: $DOCKER_HOST, else $DOCKER_CONTEXT, else the `currentContext` of
 * config.json, else /var/run/docker.sock. Nothing is connected to.
 *
 * Throws ERR_ENGINE_ENDPOINT for a form that is unknown, a context that is not there, and a connection that anybody on
 * the way could change: TCP to another machine without TLS, and TLS that checks nothing.
 */
export const findEndpoint = (environment: Environment): Endpoint => {
  const folder = environment['DOCKER_CONFIG'] || join(environment['HOME'] ?? '/nonexistent', '.docker')
  const host = environment['DOCKER_HOST']
  if (host) return endpointOf(host, '$DOCKER_HOST', () => tlsFromEnvironment(environment, folder))
  const asked = environment['DOCKER_CONTEXT']
  const context = asked || currentContext(folder)
  if (context && context !== 'default') return endpointOfContext(folder, context)
  return { kind: 'unix', socketPath: usualSocket, from: 'the usual socket' }
}

/** An endpoint as a person writes it. */
export const describeEndpoint = (endpoint: Endpoint): string => {
  if (endpoint.kind === 'unix') return `unix://${endpoint.socketPath}`
  if (endpoint.kind === 'ssh')
    return `ssh://${endpoint.destination}${endpoint.port === null ? '' : `:${endpoint.port}`}`
  return `tcp://${isIPv6(endpoint.host) ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`
}

const endpointOf = (address: string, from: string, tls: () => EngineTls | null): Endpoint => {
  const [, scheme = '', rest = ''] = /^([a-z]+):\/\/(.*)$/.exec(address) ?? []
  if (scheme === 'unix') return unixEndpoint(rest, address, from)
  const url = urlOf(`${scheme === 'ssh' ? 'ssh' : 'tcp'}://${rest}`)
  if (url === null || url.hostname === '' || !['tcp', 'http', 'https', 'ssh'].includes(scheme))
    throw refused(from, address, 'unix://PATH, tcp://HOST:PORT or ssh://[USER@]HOST[:PORT]')
  if (url.password !== '' || url.search !== '' || url.hash !== '' || !['', '/'].includes(url.pathname))
    throw refused(from, `an address with more in it than ${scheme}://HOST:PORT`, `${scheme}://HOST:PORT`)
  return scheme === 'ssh' ? sshEndpoint(url, address, from) : tcpEndpoint(url, scheme, from, tls())
}

const unixEndpoint = (path: string, address: string, from: string): Endpoint => {
  if (!isAbsolute(path)) throw refused(from, address, 'unix:// and an absolute path')
  return { kind: 'unix', socketPath: path, from }
}

// What ssh takes as an option begins with a dash, whoever wrote it into a context.
const sshEndpoint = (url: URL, address: string, from: string): Endpoint => {
  const user = decodeURIComponent(url.username)
  if (!/^[\w.-]*$/.test(user) || user.startsWith('-') || !/^\[?[\w.:][\w.:-]*\]?$/.test(url.hostname))
    throw refused(from, address, 'ssh://[USER@]HOST[:PORT]')
  const host = url.hostname.replaceAll(/[[\]]/g, '')
  return {
    kind: 'ssh',
    destination: user === '' ? host : `${user}@${host}`,
    port: url.port === '' ? null : Number(url.port),
    from,
  }
}

const tcpEndpoint = (url: URL, scheme: string, from: string, tls: EngineTls | null): Endpoint => {
  const host = url.hostname.replaceAll(/[[\]]/g, '')
  const used = tls ?? (scheme === 'https' ? { ca: null, cert: null, key: null } : null)
  if (used === null && !isLoopback(host))
    throw refused(
      from,
      `tcp://${url.host} without TLS, which whoever is on the way can change`,
      'DOCKER_TLS_VERIFY=1 with DOCKER_CERT_PATH, ssh://, or a unix socket',
    )
  const port = url.port === '' ? (used === null ? usualPort.plain : usualPort.tls) : Number(url.port)
  return { kind: 'tcp', host, port, tls: used, from }
}

const tlsFromEnvironment = (environment: Environment, folder: string): EngineTls | null => {
  if (!environment['DOCKER_TLS_VERIFY']) {
    if (environment['DOCKER_TLS'])
      throw refused('$DOCKER_TLS', 'TLS that checks no certificate', 'DOCKER_TLS_VERIFY=1')
    return null
  }
  const certs = environment['DOCKER_CERT_PATH'] || folder
  const tls = tlsFiles(certs)
  // An engine that asks for no certificate of ours needs none.
  const needed = tls.cert === null && tls.key === null ? (['ca'] as const) : (['ca', 'cert', 'key'] as const)
  const missing = needed.find((name) => tls[name] === null)
  if (missing === undefined) return tls
  throw refused('$DOCKER_TLS_VERIFY', `no ${missing}.pem in ${certs}`, tlsExpected)
}

const tlsExpected =
  'ca.pem, and cert.pem and key.pem where the engine asks for them, in $DOCKER_CERT_PATH, else in ~/.docker, or a context'

const tlsFiles = (folder: string): EngineTls => {
  const read = (name: string, parse: (pem: Buffer) => unknown): Buffer | null => {
    const path = join(folder, name)
    const pem = readIfThere(path)
    try {
      if (pem !== null) parse(pem)
    } catch (error) {
      throw refused(path, error instanceof Error ? error.message : String(error), 'PEM without a passphrase')
    }
    return pem
  }
  const certificate = (pem: Buffer): unknown => new X509Certificate(pem)
  return {
    ca: read('ca.pem', certificate),
    cert: read('cert.pem', certificate),
    key: read('key.pem', createPrivateKey),
  }
}

const currentContext = (folder: string): string | null => {
  const found = readJson(join(folder, 'config.json'))
  return typeof found?.['currentContext'] === 'string' ? found['currentContext'] : null
}

// The CLI names a context's folder by the digest of the context's name.
const endpointOfContext = (folder: string, name: string): Endpoint => {
  const digest = createHash('sha256').update(name).digest('hex')
  const from = `context ${JSON.stringify(name)}`
  const docker = member(
    member(readJson(join(folder, 'contexts/meta', digest, 'meta.json')), 'Endpoints'),
    'docker',
  )
  const host = docker?.['Host']
  if (typeof host !== 'string' || host === '')
    throw refused(from, 'no such context, or none of an engine', `one that \`docker context ls\` lists`)
  const tls = tlsFiles(join(folder, 'contexts/tls', digest, 'docker'))
  const isTls = tls.ca !== null || tls.cert !== null || tls.key !== null
  if (docker?.['SkipTLSVerify'] === true && isTls)
    throw refused(from, 'TLS that checks no certificate', 'a context without `skip-tls-verify`')
  return endpointOf(host, from, () => (isTls ? tls : null))
}

const member = (value: unknown, name: string): Readonly<Record<string, unknown>> | null => {
  if (typeof value !== 'object' || value === null) return null
  const found: unknown = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : null
  return typeof found === 'object' ? (found as Record<string, unknown> | null) : null
}

const readJson = (path: string): Readonly<Record<string, unknown>> | null => {
  const bytes = readIfThere(path)
  if (bytes === null) return null
  try {
    return member({ found: parseJson(bytes.toString()) }, 'found')
  } catch {
    throw refused(path, 'a file that is not JSON', 'what the docker CLI writes')
  }
}

const readIfThere = (path: string): Buffer | null => {
  try {
    return readFileSync(path)
  } catch (error) {
    if (isMissing(error)) return null
    throw new SallyportError(
      'ERR_ENGINE_ENDPOINT',
      `${path} cannot be read; mend its mode, or name another engine with DOCKER_HOST`,
      { path },
      { cause: error },
    )
  }
}

// A scheme without rules of its own keeps every port, where http would lose 80.
const urlOf = (address: string): URL | null => (URL.canParse(address) ? new URL(address) : null)

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))

const refused = (from: string, got: string, expected: string): SallyportError =>
  new SallyportError('ERR_ENGINE_ENDPOINT', `the engine named by ${from}: got ${got}; expected ${expected}`, {
    from,
    got,
    expected,
  })
