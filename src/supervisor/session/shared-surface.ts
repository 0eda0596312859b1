// What the server of a session lists, where its process is shared: known once for all who share it.
import type { SallyportError } from '../../errors.ts'
import type { Response } from '../message/envelope.ts'
import type { SharedDoor } from '../shared/serving.ts'
import { entriesIn, entryOf } from '../client/surface.ts'
import { utf8 } from '../message/utf8.ts'

/** As `SessionSurface`; asks nothing in the session. */
export class SharedSurface {
  /** Without a handshake a server says so to whoever subscribes */
  readonly told: readonly string[] = []
  readonly #door: SharedDoor
  #joined = Promise.withResolvers<void>()
  #isReady = false
  #isAwaited = false
  /** Why there is no next process for this session, or null */
  #over: SallyportError | null = null

  constructor(door: SharedDoor) {
    this.#door = door
  }

  get isWanted(): boolean {
    return this.#isAwaited && !this.#isReady
  }

  known(): Promise<void> | null {
    if (this.#over !== null) return Promise.reject(this.#over)
    if (this.#isReady) return this.#door.known()
    this.#isAwaited = true
    return this.#joined.promise.then(() => this.#door.known() ?? undefined)
  }

  ready(): void {
    this.#isReady = true
    this.#joined.resolve()
  }

  begin(): void {
    // the door has asked already
  }

  changed(): void {
    this.#door.changed()
  }

  introduce(): void {
    // the door has heard it already
  }

  /** The host got the answer to a list: with anything in it that was not compared, all is, before what is governed goes on. */
  listed(method: string, { text, result }: Response): void {
    const { compared } = this.#door
    if (compared === null || result === null) return
    const shown = entriesIn(method, utf8(text, result.start, result.end))
    if (!shown.every((entry) => compared.has(entry))) this.#door.changed()
  }

  /** False for an entry of a list, a JSON text, that was never compared with what was accepted. */
  isKnown(method: string, text: string): boolean {
    return this.#door.compared?.lacks(method, entryOf(text)) !== true
  }

  /** Ends every wait, now and later. */
  end(reason: SallyportError): void {
    this.#over ??= reason
    this.fail(reason)
  }

  /** Ends every wait; a later one is for the next process. */
  fail(reason: SallyportError): void {
    this.#joined.promise.catch(() => undefined)
    this.#joined.reject(reason)
    this.#joined = Promise.withResolvers<void>()
    this.#isReady = false
    this.#isAwaited = false
  }
}
