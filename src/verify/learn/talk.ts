// One conversation with a server that is being learned: what a drive says goes in as it is, and answers are told apart.
import { createHash } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { whenLate, within } from '../../lib/deadline.ts'
import { LineSplitter } from '../../lib/lines.ts'
import { parseJson } from '../../lib/parse-json.ts'
import type { SandboxProcess } from '../../sandbox/driver.ts'
import { inputOf } from '../../supervisor/dispatch.ts'

/** A JSON-RPC message. */
export type Message = Readonly<Record<string, unknown>>

/** What came of one request: `tool-error` is a result with `isError`, `none` no answer before the server or the wait ended. */
export interface Answer {
  /** The method, with the tool's name where it is a call */
  readonly to: string
  readonly outcome: 'result' | 'tool-error' | 'error' | 'none'
  /** Of the whole result or error, so that two answers can be compared */
  readonly digest: string
  /** The result, where there is one */
  readonly result: unknown
}

/** Longest line that is read from a server or a host, bytes */
export const lineBytes = 10 * 1024 * 1024
const answerMs = 30_000

/** Speaks to one running server. Its own requests are answered as the drive recorded, else declined. */
export class Talk {
  readonly #stdin: Writable
  readonly #waiting = new Map<string, (message: Message | null) => void>()
  readonly #replies: ReadonlyMap<string, Message>
  #isOver = false

  /** `replies` are a host's answers to the server's own requests, by the JSON of their ids. */
  constructor(process: SandboxProcess, replies: ReadonlyMap<string, Message> = new Map()) {
    this.#stdin = inputOf(process)
    this.#stdin.on('error', () => this.#end()) // it reads no more, and its output ends as well
    this.#replies = replies
    const lines = new LineSplitter(lineBytes, {
      line: (bytes, _text, start, end) => this.#take(parseMessage(bytes.toString('utf8', start, end))),
      overlong: () => undefined,
      overlongEnd: () => undefined,
    })
    process.stdout.on('data', (chunk: Buffer) => lines.push(chunk)).once('close', () => this.#end())
  }

  say(message: Message): void {
    if (!this.#isOver && this.#stdin.writable) this.#stdin.write(`${JSON.stringify(message)}\n`)
  }

  /** Sends a request and returns what came of it; never rejects but for the signal. */
  async ask(message: Message, signal: AbortSignal): Promise<Answer> {
    const to = nameOf(message)
    const key = JSON.stringify(message['id'])
    const { promise, resolve } = Promise.withResolvers<Message | null>()
    this.#waiting.set(key, resolve)
    if (this.#isOver) resolve(null)
    this.say(message)
    const inTime = whenLate(answerMs, () => resolve(null))
    try {
      return answerOf(to, await within(promise, 2 * answerMs, () => new Error('unreachable'), signal))
    } finally {
      inTime()
      this.#waiting.delete(key)
    }
  }

  #take(message: Message | null): void {
    if (message === null) return
    const id = JSON.stringify(message['id'])
    if (typeof message['method'] === 'string') {
      if (message['id'] !== undefined) this.say(this.#replies.get(id) ?? replyTo(message))
      return
    }
    this.#waiting.get(id)?.(message)
  }

  #end(): void {
    this.#isOver = true
    for (const resolve of this.#waiting.values()) resolve(null)
  }
}

/** Passes every byte of a stream to the server as it is, until either ends. */
export const feed = async (from: Readable, process: SandboxProcess): Promise<void> => {
  await pipeline(from, inputOf(process)).catch(() => undefined) // the server may end first
}

/** Reads one line; null where it is no JSON object. */
export const parseMessage = (line: string): Message | null => {
  try {
    const value: unknown = parseJson(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Message) : null
  } catch {
    return null
  }
}

const nameOf = ({ method, params }: Message): string => {
  const named = typeof params === 'object' && params !== null && 'name' in params ? params.name : undefined
  return typeof named === 'string' ? `${String(method)} ${named}` : String(method)
}

const answerOf = (to: string, message: Message | null): Answer => {
  if (message === null) return { to, outcome: 'none', digest: '', result: null }
  const { result, error } = message
  const digest = createHash('sha256')
    .update(JSON.stringify(result ?? error ?? null))
    .digest('hex')
  if (result === undefined) return { to, outcome: 'error', digest, result: null }
  const isError =
    typeof result === 'object' && result !== null && 'isError' in result && result.isError === true
  return { to, outcome: isError ? 'tool-error' : 'result', digest, result }
}

// Nobody is there to ask: a host without capabilities says no more.
const replyTo = ({ id, method }: Message): Message =>
  method === 'ping'
    ? { jsonrpc: '2.0', id, result: {} }
    : { jsonrpc: '2.0', id, error: { code: -32601, message: 'nobody is here to be asked' } }
