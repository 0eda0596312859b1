// The thread that judges arguments, and how long it may take for one question: by what it works, not by the clock on the wall.
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { SallyportError } from '../errors.ts'
import { build } from '../lib/build.ts'
import { whenLate } from '../lib/deadline.ts'
import { limitsAsGiven } from '../lib/engine.ts'
import { isGone, ReplacedError } from '../lib/late.ts'
import { errnoOf } from '../lib/missing.ts'
import type { Question, Said } from './argument-worker.ts'

/** Processor time that one question may take, ms */
export const limitMs = 500
/** Wall time after which a question is given up that had no processor for its limit, and a thread that does not load, ms */
const patienceMs = 20_000
/** Least time between two looks at a thread that is late, ms */
const lookMs = 50
/** Of a clock tick, in which the kernel tells processor time, ms; the same on every Linux that Node runs on */
const tickMs = 10

/**
 * How a question ended: with its answer, with the thread through its own fault, for want of time or of memory, or with the
 * thread through nobody's: it had no processor, or never began, since its file is gone or the machine makes no thread.
 */
export type Verdict =
  | { readonly kind: 'answer'; readonly problem: string | null }
  | { readonly kind: 'fault' | 'slow' | 'full' | 'starved' | 'absent'; readonly problem: string }

/** Takes one question at a time. It is of no more use once a verdict is anything but an answer. */
export class ArgumentThread implements AsyncDisposable {
  readonly memoryBytes: number
  readonly #worker: Worker
  /** Its folder below /proc, once it has loaded */
  #task: string | null = null

  /** `memoryBytes` is what values and schemas may take there: much more for one string alone, and V8 ends the process. */
  constructor(memoryBytes: number) {
    this.memoryBytes = memoryBytes
    const file = new URL(`./argument-worker${extname(import.meta.url)}`, import.meta.url)
    limitsAsGiven()
    this.#worker = new Worker(file, {
      execArgv: [],
      env: {},
      resourceLimits: {
        maxOldGenerationSizeMb: Math.ceil(memoryBytes / 1024 ** 2),
        maxYoungGenerationSizeMb: 16,
        stackSizeMb: 4,
      },
    })
    this.#worker.on('error', () => undefined) // whoever asks listens; later nobody needs to know
  }

  /** Never rejects. */
  async ask(question: Question): Promise<Verdict> {
    const worker = this.#worker
    const { promise, resolve } = Promise.withResolvers<Verdict>()
    const beganAt = performance.now()
    let spentMs = this.#task === null ? null : processorMs(this.#task)
    const look = (): void => {
      const usedMs = this.#task === null || spentMs === null ? 0 : processorMs(this.#task) - spentMs
      if (usedMs >= limitMs)
        resolve({ kind: 'slow', problem: `took more than ${limitMs} ms of processor time` })
      else if (performance.now() - beganAt >= patienceMs)
        resolve({
          kind: 'starved',
          problem: `got no ${limitMs} ms of processor time within ${patienceMs} ms`,
        })
      else inTime = whenLate(Math.max(limitMs - usedMs, lookMs), look)
    }
    let inTime = whenLate(limitMs, look)
    const said = (message: Said): void => {
      if ('problem' in message) return resolve({ kind: 'answer', problem: message.problem })
      if (message.build !== build) return resolve(absent(new ReplacedError()))
      this.#task = message.task
      spentMs = processorMs(message.task)
    }
    const failed = (error: Error): void => resolve(this.#task === null ? absent(error) : faultOf(error))
    const ended = (): void => failed(new Error('it ended without a word'))
    worker.on('message', said).on('error', failed).on('exit', ended)
    worker.ref()
    // oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
    worker.postMessage(question)
    try {
      return await promise
    } finally {
      inTime()
      // One by one: a worker has listeners of its own, without which it never answers again.
      worker.off('message', said).off('error', failed).off('exit', ended)
      worker.unref()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

/** Before it has loaded it has read nothing of any schema. */
export const absent = (error: unknown): Verdict => ({
  kind: 'absent',
  problem: isGone(error) ? new ReplacedError(error).message : SallyportError.from(error).message,
})

const faultOf = (error: Error): Verdict => ({
  kind: errnoOf(error) === 'ERR_WORKER_OUT_OF_MEMORY' ? 'full' : 'fault',
  problem: `ended the thread: ${error.message}`,
})

/** Processor time that a thread has had, ms, in steps of a tick; a thread that is gone had all there is. */
function processorMs(task: string): number {
  try {
    const stat = readFileSync(`/proc/${task}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  } catch {
    return Infinity
  }
}
