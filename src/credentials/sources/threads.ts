// Who may wait for files: a share that hangs keeps a thread of the daemon's for as long as it does, and there are four for all it reads.
import { unlessAborted } from '../../lib/deadline.ts'

/** Threads that sources have at once; who hangs on one is not told apart from who takes his time */
const most = 2

/** Paths that are being read */
const busy = new Set<string>()
/** Told, in their order, that one of them is not any more */
const waiting = new Set<() => void>()

/**
 * Does the work once no other of that path goes on, and a thread is left for it; rejects where the signal is aborted before that.
 * What has begun goes on, however long it takes.
 */
export async function onThread<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  while (busy.has(path) || busy.size >= most) await another(signal)
  busy.add(path)
  try {
    return await work()
  } finally {
    busy.delete(path)
    for (const look of waiting) look()
  }
}

/** Resolves when work of another is over; rejects with the signal's reason where that is aborted first. */
async function another(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.add(resolve)
  try {
    await unlessAborted(promise, signal)
  } finally {
    waiting.delete(resolve)
  }
}
