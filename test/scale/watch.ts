// What a daemon takes of the machine, second by second, read from /proc by a process that is not it.
import { readdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import type { Stage } from './stage.ts'

/** One second. */
export interface Second {
  /** Since the watch began, s */
  readonly at: number
  /** Of one processor, % */
  readonly cpu: number
  /** Of all processors, whoever used them, % */
  readonly machine: number
  readonly rssMib: number
  /** What is in the heap and beside it, garbage included, MiB; null before the daemon has told */
  readonly heapMib: number | null
  readonly descriptors: number
}

/** What stands beside the daemon. */
export interface Beside {
  readonly at: number
  /** All processes below the daemon, servers apart */
  readonly processes: number
  readonly servers: number
  /** Their PSS without the servers', MiB */
  readonly pssMib: number
}

/** Looks once a second until it is disposed. */
export class Watch implements Disposable {
  readonly seconds: Second[] = []
  readonly beside: Beside[] = []
  readonly #stage: Stage
  readonly #timer: NodeJS.Timeout
  readonly #began: number
  #last: Mark

  constructor(stage: Stage) {
    this.#stage = stage
    this.#last = this.mark()
    this.#began = this.#last.us
    this.#timer = setInterval(() => this.#look(), 1000)
  }

  /** The moment on its axis, s, of one of the monotonic clock. */
  since(us: number): number {
    return (us - this.#began) / 1e6
  }

  /** What was used so far, and the moment. */
  mark(): Mark {
    return { us: nowUs(), daemonUs: cpuUs(this.#stage.pid), machine: machineTicks() }
  }

  /** Counts and weighs what is below the daemon, which costs a moment: a second that has it in it says so by `machine`. */
  census(): Beside {
    const parents = parentsOf()
    const { pid } = this.#stage
    const isBelow = (it: number): boolean => it === pid || (parents.has(it) && isBelow(parents.get(it) ?? 0))
    const below = [...parents.keys()].filter((it) => it !== pid && isBelow(it))
    const servers = below.filter((it) => commandOf(it) === 'tiny\0')
    const ours = below.filter((it) => !servers.includes(it))
    const found = {
      at: this.since(nowUs()),
      processes: ours.length,
      servers: servers.length,
      pssMib: ours.reduce((sum, it) => sum + pssKib(it), 0) / 1024,
    }
    this.beside.push(found)
    return found
  }

  get descriptors(): number {
    return readdirSync(`/proc/${this.#stage.pid}/fd`).length
  }

  get rssMib(): number {
    return (
      Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${this.#stage.pid}/status`, 'utf8'))?.[1]) / 1024
    )
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const now = this.mark()
    const us = now.us - this.#last.us
    const all = now.machine.all - this.#last.machine.all
    this.seconds.push({
      at: this.since(now.us),
      cpu: ((now.daemonUs - this.#last.daemonUs) / us) * 100,
      machine: all === 0 ? 0 : ((now.machine.busy - this.#last.machine.busy) / all) * 100,
      rssMib: this.rssMib,
      heapMib: this.#heapMib(),
      descriptors: this.descriptors,
    })
    this.#last = now
  }

  #heapMib(): number | null {
    try {
      const told = JSON.parse(readFileSync(join(this.#stage.at.folder, 'told'), 'utf8')) as {
        heapBytes: number
      }
      return told.heapBytes / 1024 ** 2
    } catch {
      return null
    }
  }
}

/** What the kernel counts CPU time in for programs, whatever it is built with (USER_HZ) */
const tickUs = 10_000

/** CPU time so far, and when that was: moments are µs of the monotonic clock. */
interface Mark {
  readonly us: number
  readonly daemonUs: number
  readonly machine: Ticks
}

interface Ticks {
  readonly busy: number
  readonly all: number
}

const nowUs = (): number => Number(process.hrtime.bigint() / 1000n)

/** Of all its threads, ended ones too, µs; the kernel counts in ticks of 10 ms. */
function cpuUs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * tickUs
}

function machineTicks(): Ticks {
  const times = cpus().map((it) => it.times)
  const idle = times.reduce((sum, it) => sum + it.idle, 0)
  const busy = times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0)
  return { busy, all: busy + idle }
}

function parentsOf(): ReadonlyMap<number, number> {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc').filter((it) => /^\d+$/.test(it))) {
    try {
      const [, ppid] = /\) [^Z] (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'latin1')) ?? []
      if (ppid !== undefined) parents.set(Number(name), Number(ppid))
    } catch {
      // it has just ended
    }
  }
  return parents
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

function pssKib(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1])
  } catch {
    return 0
  }
}
