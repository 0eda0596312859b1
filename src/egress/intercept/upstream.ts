// The one connection upstream that belongs to one connection of a client.
import { readFile } from 'node:fs/promises'
import { Agent, type ClientRequest, request, type RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import { connect, createSecureContext, type SecureContext } from 'node:tls'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import type { EgressEndpoint } from '../../schema/egress.ts'
import { Refusal } from './refusal.ts'
import type { Header } from './request-head.ts'
import { systemRoots } from './roots.ts'

/** Connects to what was judged. */
export type Dial = (signal: AbortSignal) => Promise<Socket>

/** Trust in a host: the machine's roots, or the certificates of a file, which is read once. */
export type Trust = () => Promise<SecureContext>

let systemTrust: SecureContext | null = null

/** Returns the trust for a host. Rejects later where the file is missing. */
export const trustFor = (caFile: string | null): Trust => {
  let known: SecureContext | null = null
  return async () => {
    if (caFile === null)
      return (systemTrust ??= createSecureContext({ ca: systemRoots(), minVersion: 'TLSv1.2' }))
    return (known ??= createSecureContext({ ca: await readFile(caFile), minVersion: 'TLSv1.2' }))
  }
}

/**
 * Dials, and for TLS verifies the host's certificate before anything is sent. Throws a Refusal of 502 that says which of
 * both failed.
 */
export const connectUpstream = async (
  { host }: EgressEndpoint,
  dial: Dial,
  trust: Trust | null,
  ms: number,
  signal: AbortSignal,
): Promise<Socket> => {
  const failed = (error: unknown): Refusal => {
    const code = codeOf(error)
    return isCertificate(code)
      ? new Refusal(502, `certificate:${code}`, `the certificate of ${host} can't be trusted: ${code}`)
      : new Refusal(502, 'unreachable', `${host} can't be reached: ${code}`)
  }
  let socket: Socket | null = null
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(ms)])
  try {
    socket = await dial(deadline)
    socket.setNoDelay(true)
    if (trust === null) return socket
    return await secure(socket, host, await trust(), ms, deadline)
  } catch (error) {
    socket?.destroy()
    throw failed(error)
  }
}

const secure = async (
  socket: Socket,
  host: string,
  secureContext: SecureContext,
  ms: number,
  signal: AbortSignal,
): Promise<Socket> => {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const secured = connect(
    { socket, host, servername: host, secureContext, ALPNProtocols: ['http/1.1'], rejectUnauthorized: true },
    () => resolve(secured),
  )
  secured.once('error', reject)
  secured.once('close', () => reject(new Error('closed')))
  promise.catch(() => socket.destroy())
  await within(promise, ms, () => new Error('late'), signal)
  secured.off('error', reject)
  return secured
}

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

/**
 * One connection for the exchanges of one client, in turn. Nothing else uses it, and it is not replaced: when it ends,
 * `closed` is told. A host that speaks without being asked has its connection ended, so that no answer is taken for the
 * one to the next request.
 */
export class Upstream implements Disposable {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1, timeout: 0 })
  readonly #socket: Socket
  readonly #headBytes: number

  constructor(socket: Socket, headBytes: number, closed: () => void) {
    this.#socket = socket
    this.#headBytes = headBytes
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

  /** Begins a request with exactly these headers, beside what frames its body. */
  request(method: string, path: string, headers: readonly Header[]): ClientRequest {
    const options: RequestOptions = {
      agent: this.#agent,
      method,
      path,
      headers: headers.flat(),
      setHost: false,
      setDefaultHeaders: false,
      maxHeaderSize: this.#headBytes,
      insecureHTTPParser: false,
    }
    const up = request(options)
    up.maxHeadersCount = 0
    return up
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
    this.#agent.destroy()
  }
}
