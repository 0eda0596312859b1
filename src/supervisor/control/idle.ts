// What keeps a process up, and its end once nothing has for a while: whoever comes during that end is not the worse for it.
import { Rest } from '../../lib/rest.ts'

/** An end for want of use. */
interface Ending {
  readonly gone: Promise<void>
  /** Why what ends is not to be started again, where somebody else stopped it meanwhile; null otherwise */
  stoppedFor: string | null
}

interface IdleOptions {
  /** How long nobody may use it, ms; 0 is for ever */
  readonly idleMs: number
  /** Ends it, with the reason; a failure is told by whoever ends it */
  readonly end: (reason: string) => Promise<void>
}

export class Idle {
  readonly #options: IdleOptions
  readonly #rest: Rest
  #users = 0
  #ending: Ending | null = null

  constructor(options: IdleOptions) {
    this.#options = options
    this.#rest = new Rest(options.idleMs, () => this.#end())
  }

  /** Somebody uses it from now on. */
  hold(): void {
    this.#users++
    this.#rest.end()
  }

  /** One of them does not any more. */
  letGo(): void {
    this.#users--
  }

  /** It is up: its time begins, unless somebody uses it. */
  begin(): void {
    if (this.#users === 0) this.#rest.begin()
  }

  /** It is not up any more. */
  lost(): void {
    this.#rest.end()
  }

  /** Somebody stops it: whoever waits for the end of its rest is told so, and starts nothing. */
  stopped(reason: string): void {
    this.#rest.end()
    if (this.#ending !== null) this.#ending.stoppedFor ??= reason
  }

  /** Null unless it ends for want of use; then resolves, at that end, with why it may not be started again, or null. */
  ending(): Promise<string | null> | null {
    const ending = this.#ending
    return ending === null ? null : ending.gone.then(() => ending.stoppedFor)
  }

  #end(): void {
    const gone = this.#options
      .end(`no call for ${this.#options.idleMs} ms`)
      .catch(() => undefined)
      .finally(() => (this.#ending = null))
    this.#ending = { gone, stoppedFor: null }
  }
}
