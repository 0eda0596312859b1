// The keys of a person who is asked now and then: all are read, and those are an answer that were pressed at its prompt.
import { clearScreenDown, cursorTo, moveCursor } from 'node:readline'
import { whenLate } from '../lib/deadline.ts'
import { edited, keysOf } from './typed.ts'

/** How long a question stands before its prompt comes, ms: what is typed until then was begun before it could be read */
const lookMs = 300

const begunBefore = 'what stands at this prompt was begun before it: enter or Ctrl-U takes it away'
const tooEarly = 'that was begun before there was a prompt, and is no answer'

/** The keys that leave: Ctrl-C, Ctrl-D and Ctrl-\ */
const leaves = '\u0003\u0004\u001c'
const suspends = '\u001a' // Ctrl-Z

/** A prompt that waits for its line. */
interface Prompt {
  readonly text: string
  /** Takes the line, null where the question is over, or `again` where the prompt is to be put once more */
  readonly settle: (said: string | typeof again | null) => void
}

const again = Symbol('again')

/**
 * Takes the terminal at stdin for as long as it lives. What is typed while nothing is asked would otherwise wait in the
 * terminal, and be the answer to a question that nobody has seen.
 */
export class Keyboard implements Disposable {
  readonly #left: () => void
  #prompt: Prompt | null = null
  /** What is typed of a line that has not ended */
  #line = ''
  /** Where that was begun: at another prompt than the one that it ends at, or at none, it is no answer */
  #begunAt: Prompt | null = null
  /** The prompt and what is typed, as the screen shows them; empty where it shows none */
  #shown = ''
  /** The begin of a key that was read in part */
  #cut = ''

  /** `left` is told of Ctrl-C, of Ctrl-D, of Ctrl-\ and of a terminal that is gone. */
  constructor(left: () => void) {
    this.#left = left
    process.stdin.setEncoding('utf8').on('data', this.#heard).on('end', left).on('error', left)
    process.on('SIGCONT', this.#continued).on('SIGHUP', this.#ended).on('SIGQUIT', this.#ended)
    process.stdin.setRawMode(true)
  }

  /** What is typed at the prompt, in small letters; null where the question ends before. */
  async line(prompt: string, signal: AbortSignal): Promise<string | null> {
    for (;;) {
      const said = await this.#said(prompt, signal)
      if (said !== again) return said === null ? null : said.trim().toLowerCase()
      await looked(signal)
    }
  }

  /** Writes whole lines, above the prompt and what is typed where there is one. */
  write(lines: string): void {
    this.#clear()
    process.stdout.write(lines)
    if (this.#prompt !== null) this.#show(this.#prompt)
  }

  [Symbol.dispose](): void {
    process.off('SIGCONT', this.#continued).off('SIGHUP', this.#ended).off('SIGQUIT', this.#ended)
    process.stdin.setRawMode(false)
    process.stdin.off('data', this.#heard).off('end', this.#left).off('error', this.#left)
    process.stdin.pause()
  }

  async #said(text: string, signal: AbortSignal): Promise<string | typeof again | null> {
    if (signal.aborted) return null
    const { promise, resolve } = Promise.withResolvers<string | typeof again | null>()
    const prompt = { text, settle: resolve }
    const over = (): void => {
      if (this.#prompt !== prompt) return
      this.#clear()
      this.#settle(null)
    }
    signal.addEventListener('abort', over, { once: true })
    if (this.#line !== '') process.stdout.write(`${begunBefore}\n`)
    this.#prompt = prompt
    this.#show(prompt)
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', over)
    }
  }

  readonly #heard = (read: string): void => {
    const { keys, cut } = keysOf(this.#cut + read)
    this.#cut = cut
    for (const key of keys) {
      if (leaves.includes(key)) return this.#left()
      if (key === suspends) this.#suspend()
      else if (key === '\r' || key === '\n') this.#endLine()
      else this.#edit(key)
    }
  }

  #edit(key: string): void {
    const before = this.#line
    this.#line = edited(before, key)
    if (before === '') this.#begunAt = this.#prompt
    if (this.#prompt !== null && this.#line !== before) this.#show(this.#prompt)
  }

  #endLine(): void {
    const said = this.#line
    this.#line = ''
    if (this.#prompt === null) return
    process.stdout.write('\n')
    this.#shown = ''
    if (said === '' || this.#begunAt === this.#prompt) this.#settle(said) // what comes after it belongs to nothing
    else this.write(`${tooEarly}\n`)
  }

  #settle(said: string | typeof again | null): void {
    this.#prompt?.settle(said)
    this.#prompt = null
  }

  /** Shows the prompt with what is typed, instead of what it was before. */
  #show({ text }: Prompt): void {
    const line = text + this.#line
    if (this.#shown !== '' && line.startsWith(this.#shown))
      process.stdout.write(line.slice(this.#shown.length))
    else {
      this.#clear()
      process.stdout.write(line)
    }
    this.#shown = line
  }

  #clear(): void {
    const { columns } = process.stdout
    const rows = columns > 0 ? Math.floor(Math.max(this.#shown.length - 1, 0) / columns) : 0
    this.#shown = ''
    moveCursor(process.stdout, 0, -rows)
    cursorTo(process.stdout, 0)
    clearScreenDown(process.stdout)
  }

  /** Ctrl-Z, which a terminal whose keys are read one by one does not see to. */
  #suspend(): void {
    this.#clear()
    process.stdin.setRawMode(false)
    process.kill(process.pid, 'SIGTSTP')
    this.#continued() // a stop is discarded where no shell could end it, and then nothing tells
  }

  /**
   * Takes the terminal again, whatever it is by now. What was typed meanwhile was for whoever had it: a prompt that stood comes
   * again as that of a new question does.
   */
  readonly #continued = (): void => {
    process.stdin.setRawMode(false) // as it is believed to be the other already, nothing would be set
    process.stdin.setRawMode(true)
    this.#line = this.#cut = this.#shown = ''
    this.#settle(again)
  }

  /** Gives the terminal back, and ends as the signal does. */
  readonly #ended = (signal: NodeJS.Signals): void => {
    this[Symbol.dispose]()
    process.kill(process.pid, signal)
  }
}

/** Resolves when a question has stood for as long as it takes to see that it is another, or the signal has aborted. */
export async function looked(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const done = (): void => resolve()
  const callOff = whenLate(lookMs, done)
  signal.addEventListener('abort', done, { once: true })
  if (signal.aborted) done()
  await promise
  callOff()
  signal.removeEventListener('abort', done)
}
