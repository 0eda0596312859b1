// Questions of the 2026-07-28 era that are with the host: a result asked them, and the request that answers them has yet to come.
import { hash } from 'node:crypto'
import { whenLate } from '../../lib/deadline.ts'
import { decodeString, type Member } from '../../lib/json-scan.ts'
import { TaskQuestions } from './task-questions.ts'

/** Questions that are remembered as over, since their answer may still come, and come again */
const maxLate = 1024
/** Questions that wait on beside the queue, since an answer may have been another's; beyond that the first of them is over */
const maxDisputed = 64

/** What one result asked. */
export interface Asked {
  readonly key: QuestionKey
  /** Names under which a person is to answer */
  readonly names: readonly string[]
  /** The questions, to hold their answers against; null where they are too long */
  readonly words: string | null
  readonly timeoutMs: number
  /** Told once, when no answer came in time */
  readonly expired: () => void
}

interface Waiting extends Asked {
  readonly inTime: () => void
  /** An answer came that may have been that of another one of this key, whose time was over: this one's own counts, too */
  isDisputed: boolean
}

/**
 * The questions of one server to one principal, over all sessions and processes: an answer may come by another than the
 * question did. How far along they are is told by the answers alone: no request is open meanwhile. Of one key answers are taken in
 * turn, and none that comes in time for one that waits is taken for another's that is too late.
 */
export class Questions {
  readonly tasks = new TaskQuestions()
  readonly #waiting: Waiting[] = []
  readonly #late: Asked[] = []

  /** Questions that wait for the host; without those that a task asks again. */
  count(task: string | null = null, again: readonly string[] = []): number {
    return this.#waiting
      .filter(({ isDisputed }) => !isDisputed)
      .reduce((sum, { names }) => sum + names.length, this.tasks.countBut(task, again))
  }

  ask({ names, words, ...said }: Asked): void {
    const asked = { ...said, ...structuredClone({ names, words }) } // copies: what was cut out of a line would keep all of it
    const expire = (): void => {
      this.#end(waiting)
      if (waiting.isDisputed) return
      this.#late.push({ ...asked, words: null }) // what answers it now reaches no server
      if (this.#late.length > maxLate) this.#late.shift()
      asked.expired()
    }
    const inTime = whenLate(asked.timeoutMs, expire, { unref: true })
    const waiting: Waiting = { ...asked, inTime, isDisputed: false }
    this.#waiting.push(waiting)
  }

  /** What is asked, or was, under that key; empty where nobody knows of it. */
  words(key: QuestionKey): string | null {
    const all = [...this.#waiting, ...this.#late]
    return (all.find(isOf(key, 'request')) ?? all.find(isOf(key, 'state')) ?? { words: '' }).words
  }

  /** An answer came: the names in it for which it is too late. */
  answer(key: QuestionKey): readonly string[] {
    for (const by of ['request', 'state'] as const) {
      const waiting = this.#waiting.filter(isOf(key, by))
      const late = this.#late.filter(isOf(key, by))
      const one = waiting.find(({ isDisputed }) => !isDisputed) ?? waiting[0]
      if (one !== undefined) {
        if (late.length > 0) this.#dispute(one)
        else this.#end(one)
        return []
      }
      // Whatever came of the answer before: what is over stays over.
      if (late.length > 0) return late.flatMap(({ names }) => names)
    }
    return []
  }

  #dispute(one: Waiting): void {
    one.isDisputed = true
    const disputed = this.#waiting.filter(({ isDisputed }) => isDisputed)
    const [first] = disputed
    if (disputed.length > maxDisputed && first !== undefined) this.#end(first)
  }

  #end(one: Waiting): void {
    this.#waiting.splice(this.#waiting.indexOf(one), 1)
    one.inTime()
  }
}

/** Where a thing says what it is about: the result that asks, and the request that it answers or that answers it. */
export interface Said {
  readonly text: string
  readonly inner: readonly Member[]
}

/** What a result's questions and the request that answers them have in common, as digests: that may be as long as a message. */
export interface QuestionKey {
  /** The server's state as it wrote it, else what was asked about; a server may give the same to all that it asks */
  readonly state: string
  /** The same with the rest of the request, which a host says again as it was */
  readonly request: string
}

const isOf =
  (key: QuestionKey, by: keyof QuestionKey) =>
  (one: Asked): boolean =>
    one.key[by] === key[by]

/** What of a request its retry has otherwise. */
const ofOneTry: ReadonlySet<string> = new Set(['inputResponses', 'requestState', '_meta'])

export function questionKey(method: string, params: Said, holder: Said = params): QuestionKey {
  const state = valueOf(holder, 'requestState')
  const common =
    state === null ? `${method} ${valueOf(params, 'name') ?? valueOf(params, 'uri') ?? ''}` : `state ${state}`
  const rest = params.inner
    .filter(({ key }) => !ofOneTry.has(key))
    .map(({ key, start, end }) => [key, params.text.slice(start, end)])
  return { state: hash('sha256', common), request: hash('sha256', JSON.stringify([common, method, rest])) }
}

/** A member's text, decoded where it is a string; null where there is none. */
export function valueOf({ text, inner }: Said, name: string): string | null {
  const member = inner.find(({ key }) => key === name)
  if (member === undefined) return null
  const raw = text.slice(member.start, member.end)
  return raw.startsWith('"') ? decodeString(raw) : raw
}
