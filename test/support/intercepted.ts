// A sandbox's way to one host that carries a credential: real sockets, real TLS, real leases; the host is the test's.
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import {
  connect as connectTls,
  createServer as createTlsServer,
  type SecureVersion,
  type TLSSocket,
} from 'node:tls'
import { createBroker } from '../../src/credentials/broker.ts'
import { createInterceptor } from '../../src/egress/intercept/interceptor.ts'
import { type InterceptLimits, interceptLimits } from '../../src/egress/intercept/limits.ts'
import { newInstanceId } from '../../src/lib/ids.ts'
import type { CredentialViolation, Injection } from '../../src/schema/credentials.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { commonAuthority } from './certificates.ts'
import { tempDir } from './temp-dir.ts'
import { patienceMs } from './patience.ts'

/** Resolved by every client without a server of names; the door is on 127.0.0.1, the host itself on 127.0.0.2 */
export const host = 'localhost'
const hostAddress = '127.0.0.2'
export const token = 'tok_"odd/+%secret~0123456789'
export const otherToken = 'tok_of-another-0123456789'

/** How the way is laid. */
interface Options {
  readonly injection?: Partial<Injection>
  /** Whether TLS is spoken on both sides */
  readonly tls?: boolean
  readonly limits?: Partial<InterceptLimits>
  /** The host as an HTTP server; or what it does with each connection, byte for byte */
  readonly http?: RequestListener
  readonly raw?: (socket: Socket) => void
  /** The certificate that the host shows, `days` of validity; by default one that holds */
  readonly certificate?: { readonly name?: string; readonly days?: number }
  /** Whether the host's authority is trusted */
  readonly isTrusted?: boolean
  /** The newest TLS that the host speaks */
  readonly maxVersion?: SecureVersion
  /** Whether the host speaks no TLS although it should */
  readonly isHostPlain?: boolean
  /** What dialling waits for */
  readonly dialling?: Promise<unknown>
  /** The secret */
  readonly secret?: string
}

/** Lays the way, and listens for clients on loopback as the door would. */
export async function intercepted(options: Options = {}) {
  const { tls = true, isTrusted = true, secret = token } = options
  const dir = await tempDir()
  await chmod(dir.path, 0o755)
  const authority = await commonAuthority(dir.path)
  const shown = options.certificate ?? {}
  const issued = await authority.issue(shown.name ?? host, { days: shown.days ?? 1 })
  const certificate =
    options.maxVersion === undefined ? issued : { ...issued, maxVersion: options.maxVersion }

  const upstreams = new Set<Socket>()
  const dialled = new Set<Socket>()
  const upstream = hostServer(options, tls && options.isHostPlain !== true, certificate)
  upstream.on('connection', (socket: Socket) => {
    upstreams.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => upstreams.delete(socket))
  })
  const door = createServer()
  const port = await onOnePort(upstream, door)

  const violations: CredentialViolation[] = []
  const instance = newInstanceId()
  const broker = createBroker({
    sources: { api: { kind: 'env', variable: 'API' }, other: { kind: 'env', variable: 'OTHER' } },
    environment: { API: secret, OTHER: otherToken },
    uid: process.getuid?.() ?? 0,
    initPath: await findInitBinary(),
  })
  const defaults: Injection = {
    use: 'api',
    inject: 'egress',
    as: 'API_TOKEN',
    hosts: [{ host, port, caFile: isTrusted ? authority.caFile : null }],
    headers: ['authorization'],
    query: false,
    body: false,
    websocket: false,
    placeholder: { prefix: 'ph_', length: 40 },
  }
  const elsewhere: Injection = {
    ...defaults,
    use: 'other',
    as: 'OTHER_TOKEN',
    hosts: [{ host: 'other.test', port: 443, caFile: null }],
  }
  const secrets = broker.forSandbox({
    server: 'files',
    instance,
    injections: [{ ...defaults, ...options.injection }, elsewhere],
    violated: (violation) => violations.push(violation),
  })
  const interceptor = await createInterceptor(
    { server: 'files', instance, life: 'session', swap: secrets.swap, redactor: secrets.redactor },
    { ...interceptLimits, ...options.limits },
  )
  const bundle = `${dir.path}/bundle.pem`
  await writeFile(bundle, interceptor.bundle, { mode: 0o644 })

  const log = { swapped: [] as string[], redacted: [] as string[], cut: [] as string[], dialled: 0 }
  const clients = new Set<Socket>()
  const served = new Set<Promise<void>>()
  const target = {
    host,
    port,
    server: 'files',
    instance,
    connection: 'k1',
    grant: { host, port, address: null, private: true, tls, reason: 'a test' },
  }
  const dial = async (): Promise<Socket> => {
    log.dialled++
    await options.dialling
    const socket = connect(port, hostAddress)
    await once(socket, 'connect')
    return socket
  }
  door.on('connection', (client) => {
    clients.add(client)
    client.once('close', () => clients.delete(client))
    const service = interceptor.serve(client, target, dial, {
      swapped: (credential) => void log.swapped.push(credential),
      redacted: (credential) => void log.redacted.push(credential),
      cut: (reason) => void log.cut.push(reason),
    })
    served.add(service)
    void service.finally(() => served.delete(service))
  })

  const lease = (deadlineMs = 20_000) =>
    secrets.lease(
      { permit: 'p1', call: 'c1', names: ['api'], deadlineMs, attribution: 'window' },
      { signal: AbortSignal.timeout(patienceMs) },
    )

  /** A client that says what it likes, inside TLS where that is spoken. */
  const raw = async (
    more: { readonly servername?: string; readonly allowHalfOpen?: boolean } = {},
  ): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: more.allowHalfOpen === true })
    dialled.add(socket.once('close', () => dialled.delete(socket)))
    await once(socket, 'connect')
    if (!tls) return socket
    const secured = connectTls({ socket, ca: interceptor.certificate, servername: host, ...more })
    await once(secured, 'secureConnect')
    return secured
  }

  return {
    dir,
    bundle,
    port,
    url: `${tls ? 'https' : 'http'}://${host}:${port}`,
    authority: host + (port === (tls ? 443 : 80) ? '' : `:${port}`),
    placeholder: secrets.environment['API_TOKEN'] ?? '',
    otherPlaceholder: secrets.environment['OTHER_TOKEN'] ?? '',
    interceptor,
    target,
    dial,
    broker,
    secrets,
    lease,
    log,
    violations,
    upstreams,
    clients,
    served,
    raw,
    /** Says something over a connection of its own and gives all that comes back until it closes */
    async say(bytes: string | Buffer): Promise<string> {
      const socket = await raw()
      return talk(socket, bytes)
    },
    async [Symbol.asyncDispose]() {
      for (const socket of [...clients, ...upstreams, ...dialled]) socket.destroy()
      await Promise.all([closed(door), closed(upstream), ...served])
      secrets[Symbol.dispose]()
      await dir[Symbol.asyncDispose]()
    },
  }
}

/** Writes, and gives what comes back until the connection is over. */
export async function talk(socket: Socket, bytes: string | Buffer): Promise<string> {
  const parts: Buffer[] = []
  socket.on('data', (part: Buffer) => parts.push(part))
  socket.on('error', () => socket.destroy())
  const over = new Promise((resolve) => socket.once('close', resolve))
  socket.write(bytes)
  await over
  return Buffer.concat(parts).toString('latin1')
}

/** Gives what comes until the text is in it. */
export async function until(socket: Socket, text: string): Promise<string> {
  let all = ''
  for await (const part of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    all += part.toString('latin1')
    if (all.includes(text)) return all
  }
  throw new Error(`the connection ended before ${JSON.stringify(text)}: ${JSON.stringify(all)}`)
}

type Certificate = { readonly cert: string; readonly key: string; readonly maxVersion?: SecureVersion }

function hostServer({ http, raw }: Options, tls: boolean, certificate: Certificate): Server {
  if (raw !== undefined) {
    const quietly = (socket: Socket | TLSSocket): void => {
      socket.on('error', () => socket.destroy())
      raw(socket)
    }
    return tls ? createTlsServer(certificate, quietly) : createServer(quietly)
  }
  const listener: RequestListener =
    http ??
    ((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () =>
        response.end(
          JSON.stringify({
            method: request.method,
            url: request.url,
            headers: request.rawHeaders,
            body: Buffer.concat(parts).toString(),
          }),
        ),
      )
    })
  return tls ? createHttpsServer(certificate, listener) : createHttpServer(listener)
}

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve())
  })

/** Has the door listen on the host's own port, so that clients go by its name and port alone; gives that. */
async function onOnePort(upstream: Server, door: Server): Promise<number> {
  for (;;) {
    upstream.listen(0, hostAddress)
    await once(upstream, 'listening')
    const { port } = upstream.address() as AddressInfo
    door.listen(port, '127.0.0.1')
    const isFree = await once(door, 'listening').then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE') return false
        throw error
      },
    )
    if (isFree) return port
    // Somebody else has it on that address
    upstream.close()
    await once(upstream, 'close')
  }
}
