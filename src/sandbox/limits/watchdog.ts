// Bounds a sandbox's memory where no control group can: adds up what its processes hold, and says when it is too much.
import { readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs'

/** What is watched. */
export interface MemoryWatch {
  /** Host pid of the sandbox's PID 1, to which everything in it descends or falls */
  readonly initPid: number
  readonly limitBytes: number
  /** Paths in the sandbox of its scratch file systems, whose pages count too */
  readonly tmpfs: readonly string[]
  /** Called once at most */
  readonly onExceeded: (bytes: number) => void
}

const restMs = 500
/** What the kernel holds for one file of a scratch file system, empty or not: inode, name and the folder's entry */
const inodeBytes = 1024
/** The pause once half of the limit is used: who grows fast is looked at often */
const alertMs = 50
/** A pause is at least so many times what the look before it took: ten thousand processes cost a twentieth of a core, not half */
const restFactor = 20
/** The same once half of the limit is used: a hundred processes are looked at as often as one */
const alertFactor = 4

/**
 * Looks at the sandbox's memory every half second, and every 50 ms above half of the limit, but less often where a look is
 * dear, until it is disposed of or calls `onExceeded`. Best effort by nature: what is allocated between two looks is seen
 * late, and memory that no process maps or holds open, such as files in flight on a socket, is not seen.
 */
export function watchMemory(watch: MemoryWatch): Disposable {
  let timer = setTimeout(look, restMs).unref()
  return { [Symbol.dispose]: () => clearTimeout(timer) }

  function look(): void {
    const began = performance.now()
    const bytes = usedMemory(watch)
    if (bytes > watch.limitBytes) return watch.onExceeded(bytes)
    const pause = pauseMs(performance.now() - began, bytes > watch.limitBytes / 2)
    timer = setTimeout(look, pause).unref()
  }
}

/** How long nobody looks after a look that took so long, ms. */
export const pauseMs = (tookMs: number, isAlert: boolean): number =>
  isAlert ? Math.max(alertMs, alertFactor * tookMs) : Math.max(restMs, restFactor * tookMs)

/**
 * Returns the memory of a sandbox, bytes: resident and swapped pages, memfds, scratch file systems. Shared pages are
 * counted for each process that has them unless the sum is above the limit; only then the exact and dear count is made.
 */
export function usedMemory({ initPid, tmpfs, limitBytes }: Omit<MemoryWatch, 'onExceeded'>): number {
  const threads = treeOf(initPid).flatMap(livingThread)
  const files = memfdBytes(threads) + sum(tmpfs.map((path) => scratchBytes(initPid, path)))
  const rough = files + sum(threads.map(residentBytes))
  return rough <= limitBytes
    ? rough
    : files + sum(threads.map((thread) => proportionalBytes(thread) ?? residentBytes(thread)))
}

/** The process and all its descendants, however deep. Orphans fall to PID 1 of their namespace, so none gets away. */
function treeOf(initPid: number): readonly number[] {
  const found = [initPid]
  for (const pid of found)
    for (const task of list(`/proc/${pid}/task`))
      for (const child of read(`/proc/${pid}/task/${task}/children`).split(' '))
        if (child.trim() !== '') found.push(Number(child))
  return found
}

/** A thread that shows what its process holds. */
interface Thread {
  /** Its folder in `/proc` */
  readonly path: string
  readonly status: string
}

/** The first one of a process, or another where that has ended, of which the kernel says nothing any more though the rest live on; none of one that has ended. */
function livingThread(pid: number): readonly Thread[] {
  const first = { path: `/proc/${pid}`, status: read(`/proc/${pid}/status`) }
  if (!/^State:\tZ/m.test(first.status)) return [first]
  for (const task of list(`/proc/${pid}/task`)) {
    const path = `/proc/${pid}/task/${task}`
    const status = read(`${path}/status`)
    if (/^VmRSS:/m.test(status)) return [{ path, status }]
  }
  return []
}

function residentBytes({ status }: Thread): number {
  return kibibytes(status, 'VmRSS') + kibibytes(status, 'VmSwap')
}

/** Null where the kernel does not let us look; a process that has ended has nothing. */
function proportionalBytes({ path }: Thread): number | null {
  const rollup = read(`${path}/smaps_rollup`)
  return rollup === '' ? null : kibibytes(rollup, 'Pss') + kibibytes(rollup, 'SwapPss')
}

function kibibytes(text: string, key: string): number {
  return Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024
}

/** Memory files, each once: a process can fill one without mapping it. */
function memfdBytes(threads: readonly Thread[]): number {
  const sizes = new Map<number, number>()
  for (const thread of threads)
    for (const fd of list(`${thread.path}/fd`)) {
      const path = `${thread.path}/fd/${fd}`
      const isMemfd = orElse(() => readlinkSync(path).startsWith('/memfd:'), false)
      const found = isMemfd ? orElse(() => statSync(path), null) : null
      if (found !== null) sizes.set(found.ino, found.blocks * 512)
    }
  return sum([...sizes.values()])
}

function scratchBytes(initPid: number, path: string): number {
  const found = orElse(() => statfsSync(`/proc/${initPid}/root${path}`), null)
  return found === null
    ? 0
    : (found.blocks - found.bfree) * found.bsize + (found.files - found.ffree) * inodeBytes
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function list(directory: string): readonly string[] {
  return orElse(() => readdirSync(directory), [])
}

function read(file: string): string {
  return orElse(() => readFileSync(file, 'utf8'), '')
}

/** Processes end while they are looked at: what can't be read counts as nothing. */
function orElse<T, U>(look: () => T, otherwise: U): T | U {
  try {
    return look()
  } catch {
    return otherwise
  }
}
