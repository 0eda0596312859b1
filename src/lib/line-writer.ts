// Lines to a descriptor that may be full, slow or gone: what is said of the work is never worth the work.
import { writeSync } from 'node:fs'
import { errnoOf } from './missing.ts'

/** How much waits for a reader that is slow, bytes; what comes beyond it is lost, and counted. */
const waitingBytes = 1 << 18
const againMs = 50

/**
 * Writes each line at once where that goes, and never throws: not on a full disk, nor where nobody reads any more. Lines that
 * are lost are counted, and the next line that can be written stands behind one that says how many.
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
    this.#fd = fd
    this.#tellLost = tellLost
    process.once('exit', () => this.#writeWaiting())
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
