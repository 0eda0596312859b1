// How long a passage may live, and how long it may be silent.
import type { EgressLimits } from '../schema/egress.ts'
import type { Passage } from './passage.ts'

const longestTimerMs = 2 ** 31 - 1
const lookMs = 1000

/** Cuts the passage after `totalMs` (too-long) and after `idleMs` without a byte to or from the sandbox (idle). */
export function holdDeadlines(passage: Passage, { idleMs, totalMs }: EgressLimits): void {
  const { client } = passage
  client.setTimeout(Math.min(idleMs, longestTimerMs), () => passage.cut('idle'))
  const timer = setTimeout(() => passage.cut('too-long'), Math.min(totalMs, longestTimerMs))
  client.once('close', () => clearTimeout(timer))
}

/**
 * Counts the bytes of a client that somebody else speaks with, and holds them to the budgets once a second. Returns what
 * ends the count.
 */
export function watchBytes(passage: Passage, { bytesUp, bytesDown }: EgressLimits): () => void {
  const { client } = passage
  const before = client.bytesRead - client.readableLength // the first bytes were read, and put back
  const count = (): void => {
    passage.bytesUp = client.bytesRead - before
    passage.bytesDown = client.bytesWritten
    if (passage.bytesUp > bytesUp) passage.cut('bytes-up')
    else if (passage.bytesDown > bytesDown) passage.cut('bytes-down')
  }
  const timer = setInterval(count, lookMs)
  client.once('close', () => clearInterval(timer))
  return () => {
    clearInterval(timer)
    count()
  }
}
