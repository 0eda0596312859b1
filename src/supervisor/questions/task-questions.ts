// Questions of tasks: a task says again, whenever it is asked how it is, what it waits for, so each of its questions counts once.
import { whenLate } from '../../lib/deadline.ts'

/** Tasks of one principal, questions of one task, characters of those, and of all that is kept of all tasks, that are remembered */
const most = { tasks: 1024, names: 1024, characters: 65_536, ofAll: 16_777_216 } as const

/** What a task asked at once and nobody has answered; nothing of it is kept once all of it is answered */
interface Round {
  readonly left: Set<string>
  readonly inTime: () => void
}

type State = Round | 'late' | 'answered'

/** What is remembered of a task. */
interface Known {
  readonly names: Map<string, State>
  /** What it asked so far: JSON texts, or null where they are too long */
  words: readonly string[] | null
  size: number
}

/** What a task waits for. */
export interface AskedByTask {
  readonly task: string
  readonly names: readonly string[]
  /** The questions, to hold their answers against; null where they are too long */
  readonly words: string | null
  readonly timeoutMs: number
  /** Told once, with those that were not answered in time, if any */
  readonly expired: (late: readonly string[]) => void
}

/** A name stands for one question in all of a task's life; one whose time is over stays so. */
export class TaskQuestions {
  /** In the order in which they first asked */
  readonly #tasks = new Map<string, Known>()
  #size = 0

  /** Questions of all tasks that wait for the host, but those of one that are asked again. */
  countBut(task: string | null, again: readonly string[]): number {
    const same = new Set(again)
    let count = 0
    for (const [id, { names }] of this.#tasks)
      for (const [name, state] of names) if (isWaiting(state) && (id !== task || !same.has(name))) count += 1
    return count
  }

  ask({ timeoutMs, expired, ...said }: AskedByTask): void {
    const { task, names, words } = structuredClone(said) // copies: what was cut out of a line would keep all of it
    const known = this.#of(task)
    known.words = wordsWith(known.words, words)
    const fresh = names.filter((name) => !known.names.has(name))
    if (fresh.length > 0) {
      const left = new Set(fresh)
      const expire = (): void => {
        for (const name of left) put(known.names, name, 'late', most.names)
        expired([...left])
      }
      const inTime = whenLate(timeoutMs, expire, { unref: true })
      for (const name of fresh) put(known.names, name, { left, inTime }, most.names)
    }
    this.#weigh(known)
  }

  /** What a task asked, as JSON; empty where nobody knows of it, null where it is too long. */
  words(task: string): string | null {
    const known = this.#tasks.get(task)
    if (known === undefined) return ''
    return known.words === null ? null : `[${known.words.join(',')}]`
  }

  /** An answer came: the names in it for which it is too late. */
  answer(task: string, names: readonly string[]): readonly string[] {
    const known = this.#tasks.get(task)?.names
    if (known === undefined) return []
    for (const name of names) {
      const state = known.get(name)
      if (!isWaiting(state)) continue
      state.left.delete(name)
      if (state.left.size === 0) state.inTime()
      known.set(name, 'answered')
    }
    return names.filter((name) => known.get(name) === 'late')
  }

  #of(task: string): Known {
    let known = this.#tasks.get(task)
    if (known === undefined) {
      known = { names: new Map(), words: [], size: 0 }
      this.#tasks.set(task, known)
    }
    return known
  }

  /** Of too much the tasks go that asked first, but for this one. */
  #weigh(known: Known): void {
    const words = known.words ?? []
    const size = [...known.names.keys(), ...words].reduce((sum, { length }) => sum + length, 0)
    this.#size += size - known.size
    known.size = size
    for (const [task, oldest] of this.#tasks) {
      if ((this.#size <= most.ofAll && this.#tasks.size <= most.tasks) || oldest === known) return
      this.#size -= oldest.size
      this.#tasks.delete(task)
    }
  }
}

function wordsWith(known: readonly string[] | null, words: string | null): readonly string[] | null {
  if (words === null || known === null) return null
  if (known.includes(words)) return known
  const all = [...known, words]
  return all.join('').length > most.characters ? null : all
}

const isWaiting = (state: State | undefined): state is Round => typeof state === 'object'

/** Adds an entry; of more than `limit` the oldest goes. */
function put<T>(to: Map<string, T>, key: string, value: T, limit: number): void {
  to.set(key, value)
  const [oldest] = to.keys()
  if (to.size > limit && oldest !== undefined) to.delete(oldest)
}
