// A transport of the MCP SDK over host.sock, for TypeScript hosts that need no child process to reach a server.
import type { Socket } from 'node:net'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { SallyportError } from '../errors.ts'
import { parseJson } from '../lib/parse-json.ts'
import { dial, type Caller } from '../rpc/dial.ts'
import { LineBuffer } from '../rpc/line-buffer.ts'
import { protocolId } from '../rpc/protocol.ts'
import { runtimePaths } from '../rpc/runtime-dir.ts'
import { greetingAt, inTime } from './in-time.ts'

type Message = Parameters<NonNullable<Transport['onmessage']>>[0]

/** Which server of which daemon to attach to. */
export interface TransportOptions {
  readonly server: string
  readonly at: { readonly runtimeDir: string } | { readonly socket: string }
  /** Folder whose project file narrows the session, absolute */
  readonly project?: string
}

/** Makes a transport for `new Client(...).connect(transport)`; nothing is opened before `start`. */
export function createTransport(options: TransportOptions): Transport {
  return new SocketTransport(options)
}

class SocketTransport implements Transport {
  onclose?: Transport['onclose']
  onerror?: Transport['onerror']
  onmessage?: Transport['onmessage']
  readonly #options: TransportOptions
  readonly #lines = new LineBuffer()
  readonly #closing = new AbortController()
  #socket: Socket | null = null

  constructor(options: TransportOptions) {
    this.#options = options
  }

  /**
   * Attaches. Throws what the daemon refuses with: ERR_DAEMON_PROTOCOL where it speaks another protocol, ERR_SERVER_NOT_FOUND…;
   * ERR_DAEMON_UNAVAILABLE where it does not answer in time, ERR_CALL_CANCELLED where this is closed before it did.
   */
  async start(): Promise<void> {
    const { at } = this.#options
    const path = 'socket' in at ? at.socket : runtimePaths(at.runtimeDir).hostSocket
    const { socket, head } = await inTime(greetingAt(path), this.#closing.signal, (waiting) =>
      this.#attach(path, waiting),
    )
    this.#socket = socket
    if (this.#closing.signal.aborted) socket.destroy() // between its answer and this
    this.#closing.signal.throwIfAborted()
    socket.on('data', (chunk) => this.#receive(chunk))
    socket.on('error', (error) => this.onerror?.(error))
    socket.on('close', () => this.onclose?.())
    this.#receive(head)
    socket.resume()
  }

  async #attach(
    path: string,
    waiting: { readonly signal: AbortSignal },
  ): Promise<ReturnType<Caller['handOver']>> {
    const { server, project } = this.#options
    await using caller = await dial(path, waiting)
    const params = { server, protocol: protocolId }
    await caller.call('session/attach', project === undefined ? params : { ...params, project }, waiting)
    return caller.handOver()
  }

  /** Resolves once the daemon takes more. */
  async send(message: Parameters<Transport['send']>[0]): Promise<void> {
    const socket = this.#socket
    if (socket === null || !socket.writable)
      throw new SallyportError('ERR_DAEMON_UNAVAILABLE', `the session with ${this.#options.server} is closed`)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()))
    await promise
  }

  /** Ends the session, or the attempt to have one. */
  async close(): Promise<void> {
    const { server } = this.#options
    this.#closing.abort(
      new SallyportError('ERR_CALL_CANCELLED', `the session with ${server} was closed before it began`),
    )
    this.#socket?.destroySoon()
  }

  #receive(chunk: Buffer): void {
    this.#lines.push(chunk)
    try {
      for (let line = this.#lines.next(); line !== null; line = this.#lines.next()) this.#deliver(line)
    } catch (error) {
      this.onerror?.(SallyportError.from(error)) // a line beyond every bound: nothing behind it can be read
      this.#socket?.destroy()
    }
  }

  #deliver(line: Buffer): void {
    try {
      this.onmessage?.(parseJson(line.toString('utf8')) as Message)
    } catch (error) {
      this.onerror?.(SallyportError.from(error))
    }
  }
}
