// The keys of a person who is asked now and then: all are read, and those are an answer that were pressed at its prompt.
import { createInterface, type Interface } from 'node:readline/promises'
import { PassThrough } from 'node:stream'
import { whenLate } from '../lib/deadline.ts'

/** How long a question stands before its prompt comes, ms: what is typed until then was begun before it could be read */
const lookMs = 300

const tooEarly = 'that was begun before there was a prompt, and is no answer'

/** A prompt that waits for its line. */
interface Prompt {
  readonly keys: PassThrough
  readonly lines: Interface
}

/**
 * Takes the terminal at stdin for as long as it lives. What is typed while nothing is asked would otherwise wait in the
 * terminal, and be the answer to a question that nobody has seen.
 */
export class Keyboard implements Disposable {
  readonly #left: () => void
  #prompt: Prompt | null = null
  /** A line was begun while there was no prompt: what ends it is no answer either */
  #isBegun = false

  /** `left` is told of Ctrl-C, of Ctrl-D and of a terminal that is gone. */
  constructor(left: () => void) {
    this.#left = left
    process.stdin.setEncoding('utf8').on('data', this.#heard).once('end', left).once('error', left)
    process.stdin.setRawMode(true)
  }

  /** What is typed at the prompt, in small letters; null where the question ends before. */
  async line(prompt: string, signal: AbortSignal): Promise<string | null> {
    const keys = new PassThrough() // of this prompt alone: nothing that it does not read is kept for the next
    const lines = createInterface({ input: keys, output: process.stdout, terminal: true })
    lines.once('SIGINT', this.#left).once('close', this.#left)
    this.#prompt = { keys, lines }
    try {
      return (await lines.question(prompt, { signal })).trim().toLowerCase()
    } catch (error) {
      if (signal.aborted) return null
      throw error
    } finally {
      this.#prompt = null
      lines.off('close', this.#left)
      lines.close()
    }
  }

  [Symbol.dispose](): void {
    process.stdin.off('data', this.#heard).off('end', this.#left).off('error', this.#left)
    process.stdin.setRawMode(false)
    process.stdin.pause()
  }

  readonly #heard = (typed: string): void => {
    if (typed.includes('\u001a')) return this.#suspend()
    const prompt = this.#isBegun ? null : this.#prompt
    const end = typed.search(/[\r\n]/)
    if (prompt === null) return this.#drop(typed, end >= 0)
    if (end < 0) return void prompt.keys.write(typed)
    this.#prompt = null // one line is the answer, and what came with it belongs to nothing
    prompt.keys.write(typed.slice(0, end + 1))
    this.#drop(typed.slice(end + 1), true)
  }

  #drop(typed: string, endsLine: boolean): void {
    if (/[\u0003\u0004]/.test(typed)) return this.#left()
    if (this.#isBegun && endsLine && this.#prompt !== null) {
      process.stdout.write(`\n${tooEarly}\n`)
      this.#prompt.lines.prompt()
    }
    const last = typed.at(-1)
    if (last !== undefined) this.#isBegun = last !== '\r' && last !== '\n'
  }

  /** Ctrl-Z, which a terminal whose keys are read one by one does not see to. */
  #suspend(): void {
    process.once('SIGCONT', () => {
      process.stdin.setRawMode(true)
      this.#prompt?.lines.prompt(true)
    })
    process.stdin.setRawMode(false)
    process.kill(process.pid, 'SIGTSTP')
  }
}

/** Resolves when a question has stood for as long as it takes to see that it is another, or the signal has aborted. */
export function looked(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const callOff = whenLate(lookMs, resolve)
  const aborted = (): void => {
    callOff()
    resolve()
  }
  if (signal.aborted) aborted()
  signal.addEventListener('abort', aborted, { once: true })
  return promise
}
