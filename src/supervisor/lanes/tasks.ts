// Tasks: calls that were answered with a promise, and that end when the server says that the task has.
import { SallyportError } from '../../errors.ts'
import { whenLate } from '../../lib/deadline.ts'
import { parseJson } from '../../lib/parse-json.ts'
import type { Outcome } from '../../schema/governor.ts'
import { readShallow } from '../message/shallow.ts'
import type { Ask } from './wire.ts'

/** Tasks of one principal that are remembered, and characters of an id */
const most = { ids: 4096, open: 1024, characters: 1024 } as const
/** How long a task without a time to live may stay open, and the longest that any may, ms */
const longestMs = 86_400_000

/** What a server says of a task. */
export interface TaskState {
  readonly id: string
  readonly status: string
  /** Null where it said none */
  readonly ttlMs: number | null
}

/** Which tasks are one principal's, over all its sessions with a server. */
export class TaskIds {
  readonly #ids = new Set<string>()

  add(id: string): void {
    this.#ids.add(id)
    const [oldest] = this.#ids
    if (this.#ids.size > most.ids && oldest !== undefined) this.#ids.delete(oldest)
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }
}

/** How a call ended: what it was, the answer where there was one, and a word about it. */
export type Ending = readonly [
  kind: Outcome['kind'],
  bytes: string | null,
  detail: string | null,
  isState?: true,
]
/** Ends a call's record; to be called once. */
type EndOfTask = (...ending: Ending) => void

interface Open {
  readonly end: EndOfTask
  readonly inTime: () => void
  readonly until: number
}

/** The tasks of one session. Each ends once: by what the server says, when its time is over, or with the session. */
export class Tasks {
  readonly #ids: TaskIds
  readonly #open = new Map<string, Open>()

  constructor(ids: TaskIds) {
    this.#ids = ids
  }

  /** True for a task that the session's principal has created. */
  owns(id: unknown): boolean {
    return typeof id === 'string' && this.#ids.has(id)
  }

  /** A host speaks of the tasks that its own principal created, and of no others: why it may not speak of this one, or null. */
  obstacle(asks: readonly Ask[], server: string): SallyportError | null {
    for (const ask of asks) {
      if (ask.kind !== 'method' || !ask.subject.startsWith('tasks/') || ask.subject === 'tasks/list') continue
      const id = taskIn(ask)
      if (this.owns(id)) continue
      const which = typeof id === 'string' ? ` ${JSON.stringify(id.slice(0, 128))}` : ' without an id'
      const message = `${server} has no task${which} that the caller created`
      return new SallyportError('ERR_TASK_NOT_FOUND', message, { server })
    }
    return null
  }

  /** A call was answered with a task. */
  begin(task: TaskState, bytes: string, end: EndOfTask): void {
    this.#ids.add(task.id)
    this.#close(task.id, 'lost', null, 'the server began another task under the same id')
    const [oldest] = this.#open.keys()
    if (this.#open.size >= most.open && oldest !== undefined)
      this.#close(oldest, 'lost', null, `more than ${most.open} tasks of the session are open`)
    const ms = Math.min(Math.max(task.ttlMs ?? longestMs, 1), longestMs)
    const late = `the task did not end within its time to live (${ms} ms)`
    const inTime = whenLate(ms, () => this.#close(task.id, 'timeout', null, late))
    this.#open.set(task.id, { end, inTime, until: performance.now() + ms })
    this.heard(task, bytes)
  }

  /** How long a task may stay open, ms; 0 for one that is over. */
  leftMs(id: unknown): number {
    const open = typeof id === 'string' ? this.#open.get(id) : undefined
    return open === undefined ? 0 : Math.max(0, open.until - performance.now())
  }

  /** The server said how a task is, outside of an answer; false where it is none of the caller's, who is not to hear of it. */
  said(params: string): boolean {
    const task = readTask(readShallow(params, telling))
    if (task === null || !this.owns(task.id)) return false
    this.heard(task, params)
    return true
  }

  /** The server said how a task is. */
  heard({ id, status }: TaskState, bytes: string): void {
    if (status === 'completed') this.#close(id, 'result', bytes, null, true)
    else if (status === 'failed') this.#close(id, 'tool-error', bytes, null)
    else if (status === 'cancelled') this.#close(id, 'cancelled', bytes, null)
  }

  /** The server answered a request about tasks: `id` is the one that it was about. */
  answered(method: string, id: unknown, kind: Outcome['kind'], bytes: string): void {
    if (method === 'tasks/result') {
      // That the server does not know the task, or the method, says nothing of how the task ended.
      const isRefused = kind === 'error' && /"code"\s*:\s*-3260[012]\b/.test(bytes)
      if (typeof id === 'string' && !isRefused) this.#close(id, kind, bytes, null)
    } else if (kind === 'error') return
    else if (method === 'tasks/list') for (const task of tasksListed(bytes)) this.heard(task, bytes)
    else {
      const task = readTask(readShallow(bytes, telling))
      if (task !== null && task.id === id) this.heard(task, bytes)
    }
  }

  /** The server is gone. */
  end(detail: string): void {
    for (const id of this.#open.keys()) this.#close(id, 'lost', null, detail)
  }

  #close(id: string, ...ending: Ending): void {
    const open = this.#open.get(id)
    if (open === undefined) return
    open.inTime()
    this.#open.delete(id)
    open.end(...ending)
  }
}

const telling = new Set(['taskId', 'status', 'ttl', 'ttlMs', 'task', 'resultType'])

/** Reads a task, of either era; null for what is none. */
function readTask(value: unknown): TaskState | null {
  const { taskId: id, status, ttl, ttlMs = ttl } = { ...Object(value) } as Record<string, unknown>
  if (typeof id !== 'string' || id.length > most.characters || typeof status !== 'string') return null
  return { id, status, ttlMs: typeof ttlMs === 'number' && Number.isFinite(ttlMs) ? ttlMs : null }
}

/** The task that a call's result begins: in 2025-11-25 only where the host asked for one. */
export function taskBegun(result: string, isAsked: boolean, isLegacy: boolean): TaskState | null {
  // What begins one says `task`, be it with escapes.
  if (isLegacy ? !isAsked : !result.includes('"task"') && !result.includes('\\u')) return null
  const value = readShallow(result, telling)
  if (isLegacy) return readTask(Reflect.get(Object(value), 'task'))
  return Reflect.get(Object(value), 'resultType') === 'task' ? readTask(value) : null
}

/** The tasks in a list's result. */
function tasksListed(result: string): readonly TaskState[] {
  const listed: unknown = Reflect.get(Object(parseJson(result)), 'tasks')
  return (Array.isArray(listed) ? (listed as unknown[]) : []).flatMap((one) => readTask(one) ?? [])
}

/** The id in a request about a task, whatever it is; undefined in every other request. */
export const taskIn = (ask: Ask | undefined): unknown =>
  ask?.kind === 'method' && ask.subject.startsWith('tasks/')
    ? Reflect.get(Object(ask.arguments), 'taskId')
    : undefined
