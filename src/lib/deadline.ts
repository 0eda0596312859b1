// Waiting with an end: for a promise until a deadline, and for a condition that nothing announces.
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'

/** Turns of the event loop in which what lies in the kernel is read, and an end that is read there is told */
const turnsToHear = 2

/**
 * Calls `late` after `ms`, unless what is returned is called before.
 *
 * A thread that stood still meanwhile, be it for longer than that, hears first what had come by then: its timers run before it
 * looks at its descriptors.
 */
export function whenLate(ms: number, late: () => void, { unref = false } = {}): () => void {
  let isOver = false
  const afterLook = async (): Promise<void> => {
    for (let turns = 0; turns < turnsToHear; turns += 1) await turn()
    if (!isOver) late()
  }
  const timer = setTimeout(() => void afterLook(), ms)
  if (unref) timer.unref()
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}

/** Parts in which a time is counted that is spent */
const partsOfTime = 16

/**
 * The same for what takes steps of this thread's own: while it stood still it took none, and of that time no more counts than
 * one part. So it is never less than that many of its longest turns.
 */
export function whenSpent(ms: number, late: () => void): () => void {
  let [left, callOff] = [partsOfTime, (): void => undefined]
  const wait = (): void => {
    callOff = whenLate(Math.ceil(ms / partsOfTime), --left === 0 ? late : wait)
  }
  wait()
  return () => callOff()
}

/** Returns what the promise gives, or throws what `late` makes after `ms`, or the signal's reason when it aborts first. */
export const within = async <T>(
  promise: Promise<T>,
  ms: number,
  late: () => Error,
  signal?: AbortSignal,
): Promise<T> => {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const callOff = whenLate(ms, () => reject(late()))
  const abort = (): void => reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'))
  // Raced all the same: the promise may fail later, and nobody else hears of that.
  if (signal?.aborted === true) abort()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([promise, ended])
  } finally {
    callOff()
    signal?.removeEventListener('abort', abort)
  }
}

/** The value of a promise that settles in time, else null. */
export const soon = async <T>(promise: Promise<T>, ms: number): Promise<T | null> => {
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const callOff = whenLate(ms, () => resolve(null))
  try {
    return await Promise.race([promise, late])
  } finally {
    callOff()
  }
}

/** The promise, or a rejection with the signal's reason where that comes first; what the promise stands for goes on then. */
export const unlessAborted = async <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> => {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Returns true once the condition holds, false when it does not within `ms`; looks after 1 ms, then ever less often. */
export const holdsWithin = async (condition: () => boolean, ms: number): Promise<boolean> => {
  const end = performance.now() + ms
  for (let pauseMs = 1; !condition(); pauseMs = Math.min(pauseMs * 2, 50)) {
    if (performance.now() >= end) return false
    await delay(pauseMs)
  }
  return true
}
