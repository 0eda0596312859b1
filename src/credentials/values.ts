// The values that were handed out and may come back, for as long as they are to be looked for.
import { type Needle, needlesOf } from './needle.ts'
import { Scanner } from './scanner.ts'

/** Values of one credential that are remembered: a source that mints one for each call must not fill the memory. */
export const rememberedValues = 64

/** What is kept of a value. */
interface Known {
  readonly credential: string
  readonly value: Buffer
  readonly needles: readonly Needle[]
}

/** Values with their needles. Disposing zeroes them: nothing is found from then on. */
export class KnownValues implements Disposable {
  #known: readonly Known[] = []
  #scanner: Scanner | null = null
  readonly #changed: () => void
  /** The scanner for what is known now, or null; made when it is asked for, being some times the size of what it looks for. */
  readonly scanner = (): Scanner | null => (this.#scanner ??= scannerFor(this.needles))

  /** `changed` is told after each change of what is known. */
  constructor(changed: () => void = () => undefined) {
    this.#changed = changed
  }

  get needles(): readonly Needle[] {
    return this.#known.flatMap((it) => it.needles)
  }

  /** Remembers a copy of a value; beyond the limit the oldest of its credential is zeroed and forgotten. */
  add(credential: string, value: Uint8Array): void {
    if (this.#known.some((it) => it.credential === credential && it.value.equals(value))) return
    const copy = Buffer.alloc(value.length) // never of the pool, which it would keep
    copy.set(value)
    const own = this.#known.filter((it) => it.credential === credential)
    const [oldest] = own.length < rememberedValues ? [] : own
    this.#known = [
      ...this.#known.filter((it) => it !== oldest),
      { credential, value: copy, needles: needlesOf(credential, copy) },
    ]
    if (oldest !== undefined) zero(oldest)
    this.#scanner = null
    this.#changed()
  }

  /** Nobody scans for these alone any more; the values stay known. */
  rest(): void {
    this.#scanner = null
  }

  [Symbol.dispose](): void {
    for (const known of this.#known) zero(known)
    this.#known = []
    this.#scanner = null
    this.#changed()
  }
}

/** A scanner for some needles, or null where there are none. */
export const scannerFor = (needles: readonly Needle[]): Scanner | null =>
  needles.length === 0 ? null : new Scanner(needles)

const zero = ({ value, needles }: Known): void => {
  value.fill(0)
  for (const { text } of needles) text.fill(0)
}
