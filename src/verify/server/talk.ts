// A host of a server's, as small as one can be: it asks one thing at a time and answers nothing.
import { on } from 'node:events'
import type { Duplex } from 'node:stream'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import { parseJson } from '../../lib/parse-json.ts'

/** What came back: a result, or an error's message. */
export type Reply = { readonly result: unknown } | { readonly code: number; readonly message: string }

/** Lines of JSON-RPC on a stream that leads to a server's boundary. */
export class Talk {
  readonly #stream: Duplex
  readonly #lines: AsyncIterator<string>
  #lastId = 0

  constructor(stream: Duplex) {
    this.#stream = stream
    this.#lines = linesOf(stream)
  }

  /** Asks, and waits for the answer to just that. Throws ERR_SERVER_UNAVAILABLE where the stream ends before it came. */
  async ask(
    method: string,
    params: object,
    { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
  ): Promise<Reply> {
    const id = ++this.#lastId
    this.#stream.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    const late = (): SallyportError =>
      new SallyportError('ERR_CALL_TIMEOUT', `it did not answer ${method} within ${ms} ms`)
    return within(this.#answerTo(id, method), ms, late, signal)
  }

  tell(method: string): void {
    this.#stream.write(`${JSON.stringify({ jsonrpc: '2.0', method })}\n`)
  }

  async #answerTo(id: number, method: string): Promise<Reply> {
    for (;;) {
      const { value: line, done } = await this.#lines.next()
      if (done === true)
        throw new SallyportError('ERR_SERVER_UNAVAILABLE', `it ended before it answered ${method}`)
      const message = messageOf(line)
      if (message['id'] !== id || 'method' in message) continue
      if ('result' in message) return { result: message['result'] }
      const { code, message: text } = { ...(message['error'] as object) } as Record<string, unknown>
      return { code: Number(code), message: String(text) }
    }
  }
}

async function* linesOf(stream: Duplex): AsyncGenerator<string> {
  let rest = ''
  stream.setEncoding('utf8')
  for await (const [chunk] of on(stream, 'data', { close: ['end', 'close'] })) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

const messageOf = (line: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = parseJson(line)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
