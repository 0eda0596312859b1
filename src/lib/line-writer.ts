// Lines to a descriptor that may be full, slow or gone: what is said of the work is never worth the work.
import { constants, fstatSync, openSync, writeSync } from 'node:fs'
import { errnoOf } from './missing.ts'

/** How much waits for a reader that is slow, bytes; what comes beyond it is lost, and counted. */
const waitingBytes = 1 << 18
const againMs = 50
/** How long the last lines of a process may take to be taken, ms, and how often that is tried */
const lastMs = 200
const lastAgainMs = 5

/**
 * Writes each line at once where that goes, and never throws: not on a full disk, nor where nobody reads any more. Lines that
 * are lost are counted, and the next line that can be written stands behind one that says how many. Who reads slowly, or has
 * stopped a terminal, makes nobody wait but a process that ends, and that for no longer than 200 ms.
 */
export class LineWriter {
  readonly #fd: number
  readonly #tellLost: (count: number) => string
  #waiting: Buffer[] = []
  #bytes = 0
  #lost = 0
  /** Of the last line only the beginning was written */
  #isTorn = false
  #timer: NodeJS.Timeout | null = null

  /** `tellLost` makes a line, with its line feed. */
  constructor(fd: number, tellLost: (count: number) => string) {
    this.#fd = neverHeld(fd)
    this.#tellLost = tellLost
    process.once('exit', () => this.#writeLast())
  }

  /** The line with its line feed. */
  write(line: string): void {
    const bytes = Buffer.from(line)
    if (this.#bytes === 0) this.#put(Buffer.concat([this.#preface(), bytes]))
    else if (this.#bytes + bytes.length <= waitingBytes) this.#keep(bytes)
    else this.#lost += 1
  }

  #preface(): Buffer {
    const preface = (this.#isTorn ? '\n' : '') + (this.#lost > 0 ? this.#tellLost(this.#lost) : '')
    return Buffer.from(preface)
  }

  /** False where it has to wait. */
  #put(bytes: Buffer): boolean {
    let done = 0
    try {
      while (done < bytes.length) done += writeSync(this.#fd, bytes, done)
      this.#isTorn = false
      this.#lost = 0
      return true
    } catch (error) {
      if (errnoOf(error) === 'EAGAIN') {
        this.#keep(bytes.subarray(done))
        this.#isTorn = false
        this.#lost = 0
        return false
      }
      this.#isTorn ||= done > 0
      this.#lost += 1
      return true
    }
  }

  #keep(bytes: Buffer): void {
    this.#waiting.push(bytes)
    this.#bytes += bytes.length
    this.#timer ??= setInterval(() => this.#writeWaiting(), againMs).unref()
  }

  #writeLast(): void {
    const end = performance.now() + lastMs
    for (this.#writeWaiting(); this.#bytes > 0 && performance.now() < end; this.#writeWaiting())
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lastAgainMs)
  }

  #writeWaiting(): void {
    if (this.#waiting.length > 0) {
      const all = Buffer.concat([...this.#waiting, this.#preface()])
      this.#waiting = []
      this.#bytes = 0
      if (!this.#put(all)) return
    }
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }
}

/**
 * A descriptor for the same, at which a write that would wait fails with EAGAIN. A pipe or terminal is opened anew, since whoever
 * shares the one that we have may not expect that of it; a socket can't be, nor another user's pipe, and is used as Node uses it. A
 * file keeps nobody waiting. Another user's terminal stays as it is.
 */
function neverHeld(fd: number): number {
  const status = fstatSync(fd)
  if (status.isFIFO() || status.isCharacterDevice()) {
    try {
      return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    } catch {
      // it is not ours, or has no reader
    }
  }
  if (fd === 2 && !status.isFile()) void process.stderr // looked at, a pipe or socket does not block any more
  return fd
}
