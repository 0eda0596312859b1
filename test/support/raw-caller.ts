// A caller that says exactly the bytes it is given, and shows exactly the answer: what a client library would tidy up.
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { eventually } from './eventually.ts'
import { handled } from './handled.ts'

/** An answer as it stands on the wire. */
export interface RawReply {
  readonly id: unknown
  /** What kept the caller from connecting */
  readonly errno?: string
  readonly result?: Record<string, unknown>
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly data: { readonly code: string; readonly failure: string | null; readonly retryable: boolean }
  }
}

/** What Sallyport refused it with, be it an error or the result of a call that was never made. */
export function refusalOf({ error, result }: RawReply): RawReply['error'] {
  const meta = result?.['_meta'] as { readonly 'sallyport/error'?: RawReply['error'] } | undefined
  return error ?? meta?.['sallyport/error']
}

const pipe = `const socket = require('node:net').connect(process.argv[1])
socket.on('error', ({ code }) => console.log(JSON.stringify({ id: null, errno: code })))
socket.on('close', () => process.exit())
process.stdin.on('end', () => process.exit()).pipe(socket).pipe(process.stdout)`

/** Lines over one socket. Disposing closes it. */
export class RawCaller implements Disposable {
  readonly lines: string[] = []
  readonly #input: Writable
  #id = 0

  private constructor(output: Readable, input: Writable) {
    this.#input = input
    const lines = createInterface({ input: output }).on('line', (line) => this.lines.push(line))
    for (const stream of [input, output, lines]) stream.on('error', () => undefined) // what was not answered is missed by who asked
  }

  static async open(path: string): Promise<RawCaller> {
    const socket = connect(path)
    await once(socket, 'connect')
    return new RawCaller(socket, socket)
  }

  /** Connects as another user, in these groups; only root can. What keeps it out is its first line: an errno. */
  static openAs(uid: number, groups: readonly number[], path: string): RawCaller {
    const ids = ['--reuid', `${uid}`, '--regid', `${uid}`]
    const more = groups.length === 0 ? ['--clear-groups'] : ['--groups', groups.join(',')]
    const child = spawn('setpriv', [...ids, ...more, process.execPath, '-e', pipe, path], {
      env: {},
      cwd: '/',
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    return new RawCaller(child.stdout, child.stdin)
  }

  /** Sends a line, however wrong; `$ID` in it becomes the next id. Resolves with the answer to that id, or to none. */
  say(line: string): Promise<RawReply> {
    const id = ++this.#id
    const from = this.lines.length
    this.#input.write(`${line.replace('$ID', String(id))}\n`)
    const answer = eventually(() =>
      this.lines
        .map((text, n) => ({ n, ...(JSON.parse(text) as RawReply & { method?: string }) }))
        .find(
          (one) =>
            one.errno !== undefined ||
            (one.n >= from && one.method === undefined && (one.id === id || one.id === null)),
        ),
    )
    return handled(answer)
  }

  ask(method: string, params: object): Promise<RawReply> {
    return this.say(`{"jsonrpc":"2.0","id":$ID,"method":"${method}","params":${JSON.stringify(params)}}`)
  }

  /** All of them at once; their answers in the same order, however they come. */
  async askAll(method: string, each: readonly object[]): Promise<readonly RawReply[]> {
    const first = this.#id + 1
    this.#id += each.length
    const from = this.lines.length
    const asked = each.map((params, n) => JSON.stringify({ jsonrpc: '2.0', id: first + n, method, params }))
    this.#input.write(asked.map((line) => `${line}\n`).join(''))
    const answers = new Map<unknown, RawReply>()
    let read = from
    await eventually(() => {
      for (; read < this.lines.length; read++) {
        const said = JSON.parse(this.lines[read] ?? '') as RawReply & { readonly method?: string }
        if (said.method === undefined) answers.set(said.id, said)
      }
      return answers.size >= each.length
    })
    return each.map((_, n) => answers.get(first + n) ?? { id: null })
  }

  /** Answers a request of the other side's. */
  answer(id: unknown, result: object): void {
    this.#input.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
  }

  /** Says what has no answer. */
  tell(method: string, params: object = {}): void {
    this.#input.write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`)
  }

  [Symbol.dispose](): void {
    this.#input.destroy()
  }
}
