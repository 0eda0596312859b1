// Who may wait for files: a share that hangs keeps a thread of the daemon's for as long as it does, and there are four for all it reads.
import { unlessAborted } from '../../lib/deadline.ts'

/** Threads that sources have at once; who hangs on one is not told apart from who takes his time */
const most = 2

interface Waiting {
  readonly path: string
  readonly begin: () => void
}

/** Paths that are being read */
const busy = new Set<string>()
/** In their order */
const waiting = new Set<Waiting>()

const mayBegin = (path: string): boolean => !busy.has(path) && busy.size < most

/**
 * Does the work once no other of that path goes on, and a thread is left for it; rejects where the signal is aborted before that.
 * What has begun goes on, however long it takes.
 */
export async function onThread<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  if (mayBegin(path)) busy.add(path)
  else await turn(path, signal)
  try {
    return await work()
  } finally {
    giveOn(path)
  }
}

/** The path and its thread are somebody else's: the first's who may begin. */
function giveOn(path: string): void {
  busy.delete(path)
  for (const next of waiting)
    if (mayBegin(next.path)) {
      waiting.delete(next)
      busy.add(next.path)
      return next.begin()
    }
}

/** Resolves when the path is this one's; rejects with the signal's reason where that is aborted first. */
async function turn(path: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const own: Waiting = { path, begin: resolve }
  waiting.add(own)
  try {
    await unlessAborted(promise, signal)
  } catch (error) {
    if (!waiting.delete(own)) giveOn(path) // it had just been given
    throw error
  }
}
