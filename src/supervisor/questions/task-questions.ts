// Questions of tasks: a task says again, whenever it is asked how it is, what it waits for, so each of its questions counts once.

/** Tasks of one principal, questions of one task, and characters of those, that are remembered */
const most = { tasks: 1024, names: 1024, characters: 65_536 } as const

type State = 'waiting' | 'late' | 'answered'

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
  readonly #tasks = new Map<string, Map<string, State>>()
  /** What each asked so far: JSON texts, or null where they are too long */
  readonly #words = new Map<string, readonly string[] | null>()

  /** Questions of all tasks but one that wait for the host. */
  countBut(task: string | null): number {
    let count = 0
    for (const [id, names] of this.#tasks)
      if (id !== task) for (const state of names.values()) if (state === 'waiting') count += 1
    return count
  }

  ask({ timeoutMs, expired, ...said }: AskedByTask): void {
    const { task, names, words } = structuredClone(said) // copies: what was cut out of a line would keep all of it
    put(this.#words, task, this.#wordsWith(task, words), most.tasks)
    const known = this.#of(task)
    const fresh = names.filter((name) => !known.has(name))
    if (fresh.length === 0) return
    for (const name of fresh) put(known, name, 'waiting', most.names)
    setTimeout(() => {
      const late = fresh.filter((name) => known.get(name) === 'waiting')
      for (const name of late) known.set(name, 'late')
      if (late.length > 0) expired(late)
    }, timeoutMs).unref()
  }

  /** What a task asked, as JSON; empty where nobody knows of it, null where it is too long. */
  words(task: string): string | null {
    const words = this.#words.get(task)
    if (words === undefined) return ''
    return words === null ? null : `[${words.join(',')}]`
  }

  /** An answer came: the names in it for which it is too late. */
  answer(task: string, names: readonly string[]): readonly string[] {
    const known = this.#tasks.get(task)
    if (known === undefined) return []
    for (const name of names) if (known.get(name) === 'waiting') known.set(name, 'answered')
    return names.filter((name) => known.get(name) === 'late')
  }

  #wordsWith(task: string, words: string | null): readonly string[] | null {
    const known = this.#words.get(task) ?? []
    if (words === null || this.#words.get(task) === null) return null
    if (known.includes(words)) return known
    const all = [...known, words]
    return all.join('').length > most.characters ? null : all
  }

  #of(task: string): Map<string, State> {
    const known = this.#tasks.get(task) ?? new Map<string, State>()
    if (!this.#tasks.has(task)) put(this.#tasks, task, known, most.tasks)
    return known
  }
}

/** Adds an entry; of more than `limit` the oldest goes. */
function put<T>(to: Map<string, T>, key: string, value: T, limit: number): void {
  to.set(key, value)
  const [oldest] = to.keys()
  if (to.size > limit && oldest !== undefined) to.delete(oldest)
}
