// The streams of a spawned launcher, kept from losing bytes and from ending the daemon.
import type { ChildProcess } from 'node:child_process'
import { Duplex } from 'node:stream'
import { SallyportError } from '../errors.ts'

/**
 * Returns the parent's end of a descriptor that was spawned as a pipe.
 *
 * It has a listener for errors: a server that closes a stream or dies must not end the daemon with an unheard one. What
 * happened is told by the tree's end.
 */
export const streamOn = ({ stdio }: ChildProcess, fd: number): Duplex => {
  const streams: readonly unknown[] = stdio
  const stream = streams[fd]
  if (!(stream instanceof Duplex))
    throw new SallyportError('ERR_INTERNAL', `the launcher was spawned without descriptor ${fd}`)
  return stream.on('error', () => {})
}

/**
 * Keeps what arrives until somebody reads, and returns the stream.
 *
 * When a child exits, Node sets every stream of it flowing: what a quick server wrote would be thrown away. A listener for
 * `readable` prevents that, and goes when the first reader comes.
 */
export const holdUntilRead = (stream: Duplex): Duplex => {
  const hold = (): void => {}
  const letGo = (event: string | symbol): void => {
    if (event !== 'data' && event !== 'readable') return
    stream.off('newListener', letGo)
    stream.off('readable', hold)
  }
  return stream.on('readable', hold).on('newListener', letGo)
}
