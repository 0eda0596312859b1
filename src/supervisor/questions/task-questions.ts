// Questions of tasks: a task says again, whenever it is asked how it is, what it waits for, so each of its questions counts once.

/** Tasks of one principal, questions of one task, and characters of those, that are remembered */
const most = { tasks: 1024, names: 1024, characters: 65_536 } as const

/** What a task asked at once and nobody has answered; nothing of it is kept once all of it is answered */
interface Round {
  readonly left: Set<string>
  readonly timer: NodeJS.Timeout
}

type State = Round | 'late' | 'answered'

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

  /** Questions of all tasks that wait for the host, but those of one that are asked again. */
  countBut(task: string | null, again: readonly string[]): number {
    const same = new Set(again)
    let count = 0
    for (const [id, names] of this.#tasks)
      for (const [name, state] of names) if (isWaiting(state) && (id !== task || !same.has(name))) count += 1
    return count
  }

  ask({ timeoutMs, expired, ...said }: AskedByTask): void {
    const { task, names, words } = structuredClone(said) // copies: what was cut out of a line would keep all of it
    put(this.#words, task, this.#wordsWith(task, words), most.tasks)
    const known = this.#of(task)
    const fresh = names.filter((name) => !known.has(name))
    if (fresh.length === 0) return
    const left = new Set(fresh)
    const timer = setTimeout(() => {
      for (const name of left) put(known, name, 'late', most.names)
      expired([...left])
    }, timeoutMs).unref()
    for (const name of fresh) put(known, name, { left, timer }, most.names)
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
    for (const name of names) {
      const state = known.get(name)
      if (!isWaiting(state)) continue
      state.left.delete(name)
      if (state.left.size === 0) clearTimeout(state.timer)
      known.set(name, 'answered')
    }
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

const isWaiting = (state: State | undefined): state is Round => typeof state === 'object'

/** Adds an entry; of more than `limit` the oldest goes. */
function put<T>(to: Map<string, T>, key: string, value: T, limit: number): void {
  to.set(key, value)
  const [oldest] = to.keys()
  if (to.size > limit && oldest !== undefined) to.delete(oldest)
}
