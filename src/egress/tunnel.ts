// Bytes both ways between a sandbox and a judged address: half-closes, backpressure, budgets, and what may not pass.
import type { Socket } from 'node:net'
import type { EgressLimits } from '../schema/egress.ts'
import type { Passage } from './passage.ts'

/** Looks at each chunk that goes up, before it goes; a reason cuts the connection. */
export type Check = (chunk: Uint8Array) => string | null

/** What a tunnel is given beside its two ends. */
export interface Load {
  readonly limits: EgressLimits
  /** Goes up before what the client sends from now on; it was looked at already */
  readonly first: Buffer
  readonly check: Check
}

/**
 * Carries bytes until both ends have closed, or the passage was cut: bytes-up and bytes-down over a budget, or what `check`
 * says. Resolves then.
 */
export async function tunnel(passage: Passage, upstream: Socket, load: Load): Promise<void> {
  const { first, check } = load
  const { bytesUp, bytesDown } = load.limits
  const { client } = passage
  const admitUp = (chunk: Buffer): string | null => {
    if (passage.bytesUp + chunk.length > bytesUp) return 'bytes-up'
    const reason = check(chunk)
    if (reason === null) passage.bytesUp += chunk.length
    return reason
  }
  const admitDown = (chunk: Buffer): string | null => {
    if (passage.bytesDown + chunk.length > bytesDown) return 'bytes-down'
    passage.bytesDown += chunk.length
    return null
  }
  if (first.length > bytesUp) return passage.cut('bytes-up')
  if (first.length > 0) upstream.write(first)
  passage.bytesUp += first.length
  const ahead = passage.opening.takeRest()
  const held = ahead.length === 0 ? null : admitUp(ahead)
  if (held !== null) return passage.cut(held)
  if (ahead.length > 0) upstream.write(ahead)
  const up = pour(client, upstream, passage, admitUp)
  const down = pour(upstream, client, passage, admitDown)
  await Promise.all([up, down])
  passage.end()
}

/** One way. An end is passed on; an error of either side ends both, since half of a stream would look whole. */
function pour(
  from: Socket,
  to: Socket,
  passage: Passage,
  admit: (chunk: Buffer) => string | null,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  from.on('data', (chunk: Buffer) => {
    const reason = admit(chunk)
    if (reason !== null) return passage.cut(reason)
    if (!to.write(chunk)) from.pause()
  })
  to.on('drain', () => from.resume())
  // A paused socket that held nothing more has ended already
  if (from.readableEnded) to.end()
  else from.once('end', () => to.end())
  from.once('error', (error: NodeJS.ErrnoException) => {
    const side = from === passage.client ? 'client' : 'upstream'
    passage.end('ended', `${side}-${error.code === 'ECONNRESET' ? 'reset' : 'failed'}`)
  })
  from.once('close', resolve)
  if (from.destroyed) resolve()
  else from.resume()
  return promise
}
