// Connects to one of the addresses that were judged, as a literal, so that nothing is looked up a second time.
import { connect, isIPv6 } from 'node:net'
import type { Socket } from 'node:net'
import { whenLate } from '../lib/deadline.ts'
import { Refusal } from './refusal.ts'

/** A connection, and the address that took it. */
export interface Dialled {
  readonly socket: Socket
  readonly address: string
}

/**
 * Tries the addresses one after the other, each for its share of what is left of `ms`, and returns the first connection.
 * Throws connect-timeout, or connect-failed with the word of the last address, e.g. connect-failed:econnrefused.
 */
export async function dial(
  addresses: readonly string[],
  port: number,
  { ms, signal }: { ms: number; signal: AbortSignal },
): Promise<Dialled> {
  const end = performance.now() + ms
  let last: Refusal | null = null
  for (const [index, address] of addresses.entries()) {
    const shareMs = (end - performance.now()) / (addresses.length - index)
    if (shareMs <= 0) break
    try {
      return { socket: await dialOne(address, port, shareMs, signal), address }
    } catch (error) {
      signal.throwIfAborted()
      last = Refusal.from(error)
    }
  }
  throw last ?? new Refusal('connect-failed', 'failed')
}

async function dialOne(host: string, port: number, ms: number, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect({ host, port, family: isIPv6(host) ? 6 : 4, allowHalfOpen: true, noDelay: true })
  const onError = (error: NodeJS.ErrnoException): void =>
    reject(new Refusal(`connect-failed:${(error.code ?? 'unknown').toLowerCase()}`, 'failed'))
  const onAbort = (): void => reject(Refusal.from(signal.reason))
  const inTime = whenLate(ms, () => reject(new Refusal('connect-timeout', 'failed')))
  signal.addEventListener('abort', onAbort, { once: true })
  socket.once('connect', resolve).once('error', onError)
  try {
    await promise
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    inTime()
    signal.removeEventListener('abort', onAbort)
    socket.off('connect', resolve)
    socket.off('error', onError).on('error', ignored)
  }
}

function ignored(): void {
  // `close` follows an error; whoever holds the socket hears both
}
