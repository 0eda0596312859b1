// A verification in a thread of its own: it reads everything, and the daemon has calls to carry meanwhile.
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { build } from '../lib/build.ts'
import { isGone, ReplacedError } from '../lib/late.ts'
import type { Known, Verification } from './verify.ts'

/** What the thread is told; the key is copied to it and dies with it. */
export interface Task {
  readonly build: string
  readonly directory: string
  readonly key: Uint8Array | null
  readonly known: Known
}

/**
 * As `verifyJournal`, without holding up whoever asks; aborting ends it. Rejects with the thread's own error, and by name where
 * the thread's file is gone or of another build.
 */
export async function verifyApart(
  task: Omit<Task, 'build'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<Verification> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<Verification | null>()
  const file = new URL(`./verify-thread${extname(import.meta.url)}`, import.meta.url)
  const worker = new Worker(file, {
    workerData: { ...task, build } satisfies Task,
    execArgv: [],
    env: {},
  })
  worker.once('message', resolve)
  worker.once('error', (error) => reject(isGone(error) ? new ReplacedError(error) : error))
  worker.once('exit', (status) =>
    reject(new Error(`the verification ended with ${status} and without a word`)),
  )
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  try {
    const found = await promise
    if (found === null) throw new ReplacedError()
    return found
  } finally {
    signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}
