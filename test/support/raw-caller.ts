// A caller that says exactly the bytes it is given, and shows exactly the answer: what a client library would tidy up.
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { eventually } from './eventually.ts'

/** An answer as it stands on the wire. */
export interface RawReply {
  readonly id: unknown
  readonly result?: Record<string, unknown>
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly data: { readonly code: string; readonly failure: string | null; readonly retryable: boolean }
  }
}

/** Lines over one socket. Disposing closes it. */
export class RawCaller implements Disposable {
  readonly lines: string[] = []
  readonly #socket: Socket
  #id = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('error', () => undefined)
    createInterface({ input: socket }).on('line', (line) => this.lines.push(line))
  }

  static async open(path: string): Promise<RawCaller> {
    const socket = connect(path)
    await once(socket, 'connect')
    return new RawCaller(socket)
  }

  /** Sends a line, however wrong; `$ID` in it becomes the next id. Resolves with the answer to that id, or to none. */
  async say(line: string): Promise<RawReply> {
    const id = ++this.#id
    const from = this.lines.length
    this.#socket.write(`${line.replace('$ID', String(id))}\n`)
    return eventually(
      () =>
        this.lines
          .slice(from)
          .map((text) => JSON.parse(text) as RawReply & { method?: string })
          .find((one) => one.method === undefined && (one.id === id || one.id === null)),
      10_000,
    )
  }

  ask(method: string, params: object): Promise<RawReply> {
    return this.say(`{"jsonrpc":"2.0","id":$ID,"method":"${method}","params":${JSON.stringify(params)}}`)
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}
