// Questions of the 2026-07-28 era that are with the host: a result asked them, and the request that answers them has yet to come.
import { hash } from 'node:crypto'
import { decodeString, type Member } from '../../lib/json-scan.ts'
import { TaskQuestions } from './task-questions.ts'

/** Questions that are remembered as over, since their answer may still come, and come again */
const maxLate = 1024

/** What one result asked. */
export interface Asked {
  /** What the answering request repeats: the server's state as it wrote it, else what was asked about */
  readonly key: string
  /** Names under which a person is to answer */
  readonly names: readonly string[]
  /** The questions, to hold their answers against; null where they are too long */
  readonly words: string | null
  readonly timeoutMs: number
  /** Told once, when no answer came in time */
  readonly expired: () => void
}

interface Waiting extends Asked {
  readonly timer: NodeJS.Timeout
}

/**
 * The questions of one server to one principal, over all sessions and processes: an answer may come by another than the
 * question did. How far along they are is told by the answers alone: no request is open meanwhile. Two results of one key
 * answer in turn.
 */
export class Questions {
  readonly tasks = new TaskQuestions()
  readonly #waiting: Waiting[] = []
  readonly #late: Asked[] = []

  /** Questions that wait for the host; without those of a task that asks again. */
  count(task: string | null = null): number {
    return this.#waiting.reduce((sum, { names }) => sum + names.length, this.tasks.countBut(task))
  }

  ask({ names, words, ...said }: Asked): void {
    const asked = { ...said, ...structuredClone({ names, words }) } // copies: what was cut out of a line would keep all of it
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
      this.#late.push({ ...asked, words: null }) // what answers it now reaches no server
      if (this.#late.length > maxLate) this.#late.shift()
      asked.expired()
    }, asked.timeoutMs).unref()
    const waiting = { ...asked, timer }
    this.#waiting.push(waiting)
  }

  /** What is asked, or was, under that key; empty where nobody knows of it. */
  words(key: string): string | null {
    return (
      this.#waiting.find((one) => one.key === key) ??
      this.#late.find((one) => one.key === key) ?? { words: '' }
    ).words
  }

  /** An answer came: the names in it for which it is too late. */
  answer(key: string): readonly string[] {
    const found = this.#waiting.findIndex((one) => one.key === key)
    if (found >= 0) {
      const [one] = this.#waiting.splice(found, 1)
      clearTimeout(one?.timer)
      return []
    }
    // Whatever came of the answer before: what is over stays over.
    return this.#late.filter((one) => one.key === key).flatMap(({ names }) => names)
  }
}

/** Where a thing says what it is about: the result that asks, and the request that it answers or that answers it. */
export interface Said {
  readonly text: string
  readonly inner: readonly Member[]
}

/** What a result's questions and the request that answers them have in common, as a digest: that may be as long as a message. */
export function questionKey(method: string, params: Said, holder: Said = params): string {
  const state = valueOf(holder, 'requestState')
  const common =
    state === null ? `${method} ${valueOf(params, 'name') ?? valueOf(params, 'uri') ?? ''}` : `state ${state}`
  return hash('sha256', common)
}

/** A member's text, decoded where it is a string; null where there is none. */
export function valueOf({ text, inner }: Said, name: string): string | null {
  const member = inner.find(({ key }) => key === name)
  if (member === undefined) return null
  const raw = text.slice(member.start, member.end)
  return raw.startsWith('"') ? decodeString(raw) : raw
}
