// Joins the lines that pass in one turn into as few writes as there are pieces of memory.
import type { Verdict } from './wire.ts'

/** Collects runs of bytes that lie side by side; `flush` at the end of a turn writes what is collected. */
export class Outlet {
  readonly #write: (bytes: Buffer) => void
  #bytes: Buffer | null = null
  #start = 0
  #end = 0

  constructor(write: (bytes: Buffer) => void) {
    this.#write = write
  }

  /** Bytes that pass as they came. */
  pass(bytes: Buffer, start: number, end: number): void {
    if (bytes === this.#bytes && start === this.#end) {
      this.#end = end
      return
    }
    this.flush()
    this.#bytes = bytes
    this.#start = start
    this.#end = end
  }

  /** A line that stands in the place of another, in latin1 reading. */
  replace(line: string): void {
    this.flush()
    this.#write(Buffer.from(line, 'latin1'))
  }

  flush(): void {
    if (this.#bytes === null) return
    const run = this.#bytes.subarray(this.#start, this.#end)
    this.#bytes = null
    this.#write(run)
  }
}

/** Does with a line what was judged. */
export function put(outlet: Outlet, verdict: Verdict, bytes: Buffer, start: number, end: number): void {
  if (verdict === 'pass') outlet.pass(bytes, start, end + 1)
  else if (verdict !== 'drop') outlet.replace(verdict.replacement)
}
