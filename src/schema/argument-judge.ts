// Asks the thread that judges arguments, one question at a time, and ends it when an answer does not come.
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Question } from './argument-worker.ts'

/** How long one question may take, ms; the first of a thread may take this much more to load it */
const limitMs = 500
const loadMs = 2000

interface Asked {
  readonly question: Question
  readonly answer: (problem: string | null) => void
}

/** Started when first needed. A schema that was too slow once is refused from then on. */
export class ArgumentJudge implements AsyncDisposable {
  readonly #queue: Asked[] = []
  readonly #refused = new Map<string, string>()
  #worker: Worker | null = null
  #isBusy = false

  /** Resolves with null, or with what is wrong; never rejects, never takes longer than the queue before it and its limit. */
  ask(question: Question): Promise<string | null> {
    const refused = this.#refused.get(question.digest)
    if (refused !== undefined) return Promise.resolve(refused)
    return new Promise((answer) => {
      this.#queue.push({ question, answer })
      this.#next()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { answer } of this.#queue.splice(0)) answer('Sallyport is stopping')
    await this.#worker?.terminate()
  }

  #next(): void {
    const asked = this.#isBusy ? undefined : this.#queue.shift()
    if (asked === undefined) return
    const refused = this.#refused.get(asked.question.digest) // since it was put into the queue
    if (refused !== undefined) {
      asked.answer(refused)
      return this.#next()
    }
    this.#isBusy = true
    const isFresh = this.#worker === null
    const worker = this.#worker ?? this.#start()
    const ms = isFresh ? limitMs + loadMs : limitMs
    const late = `the tool's schema takes longer than ${limitMs} ms to judge; it is refused`
    const timer = setTimeout(() => finish(late), ms)
    const finish = (problem: string | null, isLost = true): void => {
      clearTimeout(timer)
      // One by one: a worker has listeners of its own, without which it never answers again.
      worker.off('message', answered).off('error', failed).off('exit', ended)
      if (isLost) this.#lose(worker, asked.question.digest, problem ?? late)
      else worker.unref()
      this.#isBusy = false
      asked.answer(problem)
      this.#next()
    }
    const answered = (problem: string | null): void => finish(problem, false)
    const failed = ({ message }: Error): void => finish(`the tool's schema cannot be used: ${message}`)
    const ended = (): void => finish("the tool's schema ends whatever judges it; it is refused")
    worker.once('message', answered).once('error', failed).once('exit', ended)
    worker.ref()
    // oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
    worker.postMessage(asked.question)
  }

  #lose(worker: Worker, digest: string, problem: string): void {
    this.#refused.set(digest, problem)
    this.#worker = null
    // It is on its way out, and nobody listens to it any more.
    worker.on('error', () => undefined)
    void worker.terminate()
  }

  #start(): Worker {
    const file = new URL(`./argument-worker${extname(import.meta.url)}`, import.meta.url)
    this.#worker = new Worker(file, {
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    })
    return this.#worker
  }
}
