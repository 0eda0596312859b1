// The first bytes of a connection, read as far as they decide something; what lies behind them stays in the stream.
import type { Socket } from 'node:net'
import { openingBytes } from './limits.ts'
import { Refusal } from './refusal.ts'

/** What a reader of first bytes found, and how many of the last chunk's bytes belong to it. */
export interface Found<T> {
  readonly value: T
  readonly used: number
}

/**
 * Feeds the socket's chunks to `take` until that returns something, and puts the bytes behind it back. The socket is paused
 * before and after. Rejects with the refusal `late` after `ms`, with client-left where it ends, and with what `take` throws.
 */
export async function readOpening<T>(
  socket: Socket,
  take: (chunk: Buffer) => Found<T> | null,
  options: { ms: number; late: string; signal: AbortSignal },
): Promise<T> {
  options.signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const onData = (chunk: Buffer): void => {
    try {
      const found = take(chunk)
      if (found === null) return
      settle()
      if (found.used < chunk.length) socket.unshift(chunk.subarray(found.used))
      resolve(found.value)
    } catch (error) {
      settle()
      reject(Refusal.from(error))
    }
  }
  const onEnd = (): void => reject(new Refusal('client-left', 'failed'))
  const onAbort = (): void => reject(Refusal.from(options.signal.reason))
  const timer = setTimeout(() => reject(new Refusal(options.late)), options.ms)
  const settle = (): void => {
    clearTimeout(timer)
    socket.off('data', onData).off('end', onEnd).off('close', onEnd).pause()
    options.signal.removeEventListener('abort', onAbort)
  }
  options.signal.addEventListener('abort', onAbort, { once: true })
  if (socket.readableEnded) onEnd()
  socket.on('data', onData).once('end', onEnd).once('close', onEnd).resume()
  try {
    return await promise
  } finally {
    settle()
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
