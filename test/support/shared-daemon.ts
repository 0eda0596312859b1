// One daemon for the tests of a file that need none of their own: each has servers of its own name in it.
import { once } from 'node:events'
import { afterAll, afterEach } from 'vitest'
import { endServe, place, serve } from './daemon.ts'
import type { TestDaemon } from './daemon.ts'

export interface SharedDaemon {
  /** The one that lives, not to be disposed; where the test before has ended it, the next life in the same place */
  living(): Promise<TestDaemon>
  /** Kills it, lets `change` have its way, and starts the next life */
  again(change?: (at: TestDaemon) => unknown): Promise<TestDaemon>
}

/** Started when a test first asks for it. A test that fails takes it along: the next try, and the next test, find nothing of that. */
export function sharedDaemon(
  config: object,
  environment: () => Readonly<Record<string, string>> = () => ({}),
): SharedDaemon {
  let held: TestDaemon | null = null
  const living = async (): Promise<TestDaemon> => {
    if (held !== null && !hasEnded(held)) return held
    const at = held ?? (await place(config))
    held = { ...at, ...(await serve(at, environment())) }
    return held
  }
  const end = async (): Promise<void> => {
    const last = held
    held = null
    if (last === null) return
    if (!hasEnded(last)) await endServe(last)
    await last[Symbol.asyncDispose]()
  }
  afterEach(({ task }) => (task.result?.state === 'fail' ? end() : undefined))
  afterAll(end)
  return {
    living,
    async again(change = () => undefined) {
      const at = await living()
      const ended = once(at.process, 'exit')
      at.process.kill('SIGKILL')
      await ended
      await at.client[Symbol.asyncDispose]()
      await change(at)
      return living()
    },
  }
}

const hasEnded = ({ process: { exitCode, signalCode } }: TestDaemon): boolean =>
  exitCode !== null || signalCode !== null
