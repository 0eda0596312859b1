// Notices that the kernel killed something in a control group for want of memory.
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '../../lib/missing.ts'

/** How often the counters are read. Version 1 notifies only through an eventfd, which Node can't hold. */
const pollMs = 200

/** Counts the OOM kills of one memory group, with one timer for all groups. */
export class OomWatch {
  #fd: number | null
  #last = 0
  #listeners: (() => void)[] = []

  constructor(directory: string, version: 1 | 2) {
    this.#fd = openSync(join(directory, version === 1 ? 'memory.oom_control' : 'memory.events'), 'r')
  }

  /** Kills so far; once the group is closed or gone, what was read last. */
  kills(): number {
    if (this.#fd === null) return this.#last
    try {
      const bytes = readSync(this.#fd, buffer, 0, buffer.length, 0)
      const [, count] = /^oom_kill (\d+)$/m.exec(buffer.toString('latin1', 0, bytes)) ?? []
      this.#last = Number(count ?? this.#last)
    } catch (thrown) {
      if (errnoOf(thrown) !== 'ENODEV') throw thrown
    }
    return this.#last
  }

  /** Calls the listener once, within 200 ms of the first kill. */
  onFirst(listener: () => void): void {
    this.#listeners.push(listener)
    watched.add(this)
    timer ??= setInterval(pollAll, pollMs).unref()
  }

  close(): void {
    const fd = this.#fd
    if (fd === null) return
    try {
      this.kills()
    } finally {
      this.#fd = null
      this.#forget()
      closeSync(fd)
    }
  }

  /** Called by the timer. */
  poll(): void {
    if (this.kills() === 0) return
    const listeners = this.#listeners
    this.#forget()
    for (const listener of listeners) listener()
  }

  #forget(): void {
    this.#listeners = []
    watched.delete(this)
    if (watched.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

const watched = new Set<OomWatch>()
const buffer = Buffer.alloc(4096)
let timer: NodeJS.Timeout | undefined

function pollAll(): void {
  for (const watch of watched) watch.poll()
}
