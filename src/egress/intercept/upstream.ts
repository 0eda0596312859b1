// The one connection upstream that belongs to one connection of a client.
import { readFile } from 'node:fs/promises'
import type { ClientRequest, RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import { connect, createSecureContext, type SecureContext } from 'node:tls'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import { http } from '../../lib/node-http.ts'
import type { EgressEndpoint } from '../../schema/egress.ts'
import { holdLittle } from './hold-little.ts'
import type { InterceptLimits } from './limits.ts'
import { Refusal } from './refusal.ts'
import type { Header } from './request-head.ts'
import { systemRoots } from './roots.ts'

/** Connects to what was judged. */
export type Dial = (signal: AbortSignal) => Promise<Socket>

/** One host of one sandbox: whom it must be certified by, and how its last conversation may be taken up again. */
export class HostTrust {
  readonly #caFile: string | null
  #context: SecureContext | null = null
  #session: { readonly ticket: Buffer; readonly until: number } | null = null

  /** Certified by the machine's roots, or by the certificates of a file, which is read once and may be missing until then. */
  constructor(caFile: string | null) {
    this.#caFile = caFile
  }

  async context(): Promise<SecureContext> {
    this.#context ??= this.#caFile === null ? systemContext() : contextOf(await readFile(this.#caFile))
    return this.#context
  }

  /** What the host gave to a connection that was verified, for the next one; null where there is none of late. */
  get session(): Buffer | null {
    return this.#session !== null && this.#session.until > performance.now() ? this.#session.ticket : null
  }

  /** Keeps what a host gave to a connection whose certificate was verified. */
  keepSession(ticket: Buffer): void {
    this.#session = { ticket, until: performance.now() + sessionMs }
  }
}

/** A certificate is looked at anew at least this often, ms. */
const sessionMs = 600_000
let systemTrust: SecureContext | null = null
const systemContext = (): SecureContext => (systemTrust ??= contextOf(systemRoots()))
const contextOf = (ca: string | Buffer): SecureContext => createSecureContext({ ca, minVersion: 'TLSv1.2' })

/**
 * Dials, and for TLS verifies the host's certificate before anything is sent. Throws a Refusal of 502 that says which of
 * both failed.
 */
export const connectUpstream = async (
  { host }: EgressEndpoint,
  dial: Dial,
  trust: HostTrust | null,
  ms: number,
  signal: AbortSignal,
): Promise<Socket> => {
  let socket: Socket | null = null
  let isOver = false
  const reach = async (): Promise<Socket> => {
    socket = await dial(signal)
    if (isOver) socket.destroy()
    socket.setNoDelay(true)
    return trust === null ? socket : secure(socket, host, trust)
  }
  try {
    return await within(reach(), ms, () => new Error('late'), signal)
  } catch (error) {
    isOver = true
    ;(socket as Socket | null)?.destroy()
    throw failed(host, codeOf(error))
  }
}

/**
 * A handshake that takes up an earlier one is the cheaper by what both would prove again: no certificate is
 * sent, signed for and verified. What is remembered stays with the host and the sandbox that it was made for.
 */
const secure = async (socket: Socket, host: string, trust: HostTrust): Promise<Socket> => {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const { session } = trust
  const secureContext = await trust.context()
  const secured = connect(
    {
      socket,
      host,
      servername: host,
      secureContext,
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: true,
      ...(session === null ? {} : { session }),
    },
    () => resolve(secured),
  )
  // Told only once the certificate was believed
  secured.on('session', (ticket: Buffer) => trust.keepSession(ticket))
  secured.once('error', reject)
  secured.once('close', () => reject(new Error('closed')))
  promise.catch(() => socket.destroy())
  await promise
  secured.off('error', reject)
  return secured
}

const failed = (host: string, code: string): Refusal =>
  isCertificate(code)
    ? new Refusal(502, `certificate:${code}`, `the certificate of ${host} can't be trusted: ${code}`)
    : new Refusal(502, 'unreachable', `${host} can't be reached: ${code}`)

const codeOf = (error: unknown): string => {
  if (error instanceof SallyportError) return error.code
  if (!(error instanceof Error)) return 'unknown'
  if ('code' in error && typeof error.code === 'string') return error.code
  return error.name === 'TimeoutError' || error.message === 'late' ? 'ETIMEDOUT' : 'closed'
}

// X509_V_ERR_* as Node names them, and its own for a name that is not in the certificate.
const isCertificate = (code: string): boolean =>
  /CERT|SIGNATURE|^ERR_TLS_CERT|^(INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$/.test(
    code,
  )

const endlessInterim = (): Refusal =>
  new Refusal(502, 'answer-interim', 'the host sent more interim answers than are passed on')

/**
 * One connection for the exchanges of one client, in turn. Nothing else uses it, and it is not replaced: when it ends,
 * `closed` is told. A host that speaks without being asked has its connection ended, so that no answer is taken for the
 * one to the next request.
 */
export class Upstream implements Disposable {
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1, timeout: 0 })
  readonly #socket: Socket
  readonly #limits: InterceptLimits

  constructor(socket: Socket, limits: InterceptLimits, closed: () => void) {
    this.#socket = socket
    holdLittle(socket)
    this.#limits = limits
    let isGiven = false
    this.#agent.createConnection = (_, given) => {
      if (isGiven) {
        given?.(new Error('the connection upstream has ended'), socket)
        return null
      }
      isGiven = true
      return socket
    }
    const unasked = (): void => void socket.destroy()
    // Told of after the agent: a request that waited has it already
    this.#agent.on('free', () => {
      if (Object.values(this.#agent.freeSockets).some((free) => free?.includes(socket)))
        socket.on('data', unasked).resume()
    })
    const reuse = this.#agent.reuseSocket.bind(this.#agent)
    this.#agent.reuseSocket = (free, up) => {
      socket.off('data', unasked)
      reuse(free, up)
    }
    socket.on('error', unasked)
    socket.once('close', closed)
    if (socket.destroyed) queueMicrotask(closed)
  }

  /**
   * Begins a request with exactly these headers, beside what frames its body. It fails where the host sends interim answers
   * without end, which come at the host's pace whether the client reads or not.
   */
  request(method: string, path: string, headers: readonly Header[]): ClientRequest {
    const options: RequestOptions = {
      agent: this.#agent,
      method,
      path,
      headers: headers.flat(),
      setHost: false,
      setDefaultHeaders: false,
      maxHeaderSize: this.#limits.headBytes,
      insecureHTTPParser: false,
    }
    const up = http.request(options)
    up.maxHeadersCount = 0
    let interim = 0
    up.on('information', () => {
      if (++interim > this.#limits.interim) up.destroy(endlessInterim())
    })
    return up
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
    this.#agent.destroy()
  }
}
