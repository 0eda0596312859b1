// The first bytes of a connection, read as far as they decide something; what lies behind them waits for who is next.
import type { Socket } from 'node:net'
import { whenLate } from '../lib/deadline.ts'
import { openingBytes } from './limits.ts'
import { Refusal } from './refusal.ts'

/** What a reader of first bytes found, and how many of the last chunk's bytes belong to it. */
export interface Found<T> {
  readonly value: T
  readonly used: number
}

const nothing = Buffer.alloc(0)

/** The beginning of what a socket says, for readers that take turns. The socket is paused while none of them reads. */
export class Opening {
  readonly #socket: Socket
  /** What was read and is nobody's yet */
  #rest: Buffer = nothing
  #giveUp: () => void = () => undefined

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /**
   * Feeds what comes to `take` until that returns something. Rejects with the refusal `late` after `ms`, with client-left
   * where the socket ends, and with what `take` throws.
   */
  async read<T>(
    take: (chunk: Buffer) => Found<T> | null,
    { ms, late }: { ms: number; late: string },
  ): Promise<T> {
    const rest = this.takeRest()
    if (rest.length > 0) {
      const found = take(rest)
      if (found !== null) return this.#keep(found, rest)
    }
    return this.#wait(take, ms, late)
  }

  /** Hands out what is nobody's yet: it comes before all that the socket still says. */
  takeRest(): Buffer {
    const rest = this.#rest
    this.#rest = nothing
    return rest
  }

  /** Leaves the bytes, and what is nobody's yet, in the socket's stream. In the turn in which they came: its end may follow. */
  putBack(bytes: Buffer = nothing): void {
    const rest = this.takeRest()
    if (rest.length > 0) this.#socket.unshift(rest)
    if (bytes.length > 0) this.#socket.unshift(bytes)
  }

  /** Whoever reads is told that the client left. */
  abandon(): void {
    this.#giveUp()
  }

  async #wait<T>(take: (chunk: Buffer) => Found<T> | null, ms: number, late: string): Promise<T> {
    const socket = this.#socket
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const onData = (chunk: Buffer): void => {
      try {
        const found = take(chunk)
        if (found !== null) resolve(this.#keep(found, chunk))
        else return
      } catch (error) {
        reject(Refusal.from(error))
      }
      settle()
    }
    const onEnd = (): void => reject(new Refusal('client-left', 'failed'))
    const inTime = whenLate(ms, () => reject(new Refusal(late)))
    const settle = (): void => void socket.off('data', onData).pause()
    this.#giveUp = onEnd
    if (socket.readableEnded || socket.destroyed) onEnd()
    socket.on('data', onData).once('end', onEnd).once('close', onEnd).resume()
    try {
      return await promise
    } finally {
      inTime()
      settle()
      this.#giveUp = () => undefined
      socket.off('end', onEnd).off('close', onEnd)
    }
  }

  #keep<T>({ value, used }: Found<T>, chunk: Buffer): T {
    this.#rest = chunk.subarray(used)
    return value
  }
}

/** What a connection on the door is for. */
export type Purpose =
  | { readonly kind: 'connect'; readonly name: string; readonly port: string }
  | { readonly kind: 'proxy' }
  | { readonly kind: 'notices' }

/** Returns a reader of the line that opens every connection; throws bad-opening for any other. */
export function openingLine(): (chunk: Buffer) => Found<Purpose> | null {
  let line = ''
  return (chunk) => {
    const feed = chunk.indexOf(10)
    line += chunk.toString('latin1', 0, feed < 0 ? Math.min(chunk.length, openingBytes) : feed)
    if (line.length >= openingBytes || !'SP1 '.startsWith(line.slice(0, 4))) throw new Refusal('bad-opening')
    return feed < 0 ? null : { value: purposeOf(line), used: feed + 1 }
  }
}

function purposeOf(line: string): Purpose {
  if (line === 'SP1 proxy') return { kind: 'proxy' }
  if (line === 'SP1 notices') return { kind: 'notices' }
  const [, name, port] = /^SP1 connect ([\x21-\x7e]+) ([\x21-\x7e]+)$/.exec(line) ?? []
  if (name === undefined || port === undefined) throw new Refusal('bad-opening')
  return { kind: 'connect', name, port }
}
