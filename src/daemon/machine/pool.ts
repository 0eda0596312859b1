// The sandboxes of one server that wait at their gates for its calls, each for one call, with nothing of the server in them.
import { SallyportError } from '../../errors.ts'
import { Due } from '../../lib/due.ts'
import { Rest } from '../../lib/rest.ts'
import type { PoolView } from '../../rpc/pool-view.ts'
import type { WarmSandbox } from '../../sandbox/launch.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { RestartSchedule } from '../../supervisor/instance/restart.ts'
import type { Outfit } from './outfit.ts'

export interface PoolOptions {
  readonly server: ServerSettings
  /** Builds one more sandbox up to its gate, and with it the outfit that owns it */
  readonly build: (signal: AbortSignal) => Promise<Outfit>
  /** Memory of one that waits, bytes */
  readonly measure: (sandbox: WarmSandbox) => number
  /** Whether so many bytes more may be held; null before the first was measured */
  readonly hasRoomFor: (bytes: number | null) => boolean
  readonly tell: (type: string, detail: Readonly<Record<string, unknown>>) => void
  /** From 0 up to 1; spreads tries that follow a failure */
  readonly random: () => number
}

interface Waiting {
  readonly outfit: Outfit
  readonly bytes: number
  readonly ages: NodeJS.Timeout
}

/**
 * Keeps `pool.size` sandboxes waiting from the first `fill` until nothing was drawn for the server's `idle_ms`. None waits longer than
 * `pool.age_ms`. One that ends by itself, or can't be built, is followed by another on the server's restart schedule.
 * Disposing it ends them all.
 */
export class Pool implements AsyncDisposable {
  readonly #options: PoolOptions
  readonly #schedule: RestartSchedule
  readonly #idle: Rest
  readonly #closed = new AbortController()
  #waiting: readonly Waiting[] = []
  #building: Promise<void> | null = null
  #retry: Due | null = null
  #lastBytes: number | null = null
  #usedAt = performance.now()
  #reason: string | null = null
  readonly #counts = { drawn: 0, missed: 0, lost: 0 }

  constructor(options: PoolOptions, rest: () => void) {
    this.#options = options
    const { restart, timeouts } = options.server
    this.#schedule = new RestartSchedule(restart, options.random)
    this.#idle = new Rest(timeouts.idleMs, rest)
  }

  get server(): ServerSettings {
    return this.#options.server
  }

  /** Memory of all that wait, bytes. */
  get bytes(): number {
    return this.#waiting.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** When it was last drawn from or filled, ms of the monotonic clock. */
  get usedAt(): number {
    return this.#usedAt
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** The server is in use: what is missing is built, one after another. */
  fill(): void {
    this.#usedAt = performance.now()
    this.#idle.begin()
    this.#build()
  }

  /** Takes out the one that has waited longest, for good; null where none waits. */
  draw(): Outfit | null {
    this.#usedAt = performance.now()
    this.#idle.begin()
    const oldest = this.#take(this.#waiting[0])
    this.#counts[oldest === null ? 'missed' : 'drawn']++
    return oldest
  }

  /** What was drawn last is of no use: its call has found none, after all. */
  unfit(): void {
    this.#counts.drawn--
    this.#counts.missed++
    this.#counts.lost++
  }

  /** There may be room again for what there was none for. */
  refill(): void {
    if (this.#reason === noRoom) this.#build()
  }

  /** Ends the one that has waited longest, for want of room; resolves when nothing of it is left. */
  async giveUpOne(): Promise<void> {
    this.#reason = noRoom
    await this.#take(this.#waiting[0])?.[Symbol.asyncDispose]()
  }

  view(): PoolView {
    const { size } = this.server.pool
    const { drawn, missed, lost } = this.#counts
    const waiting = this.#waiting.length
    return { size, waiting, memory_bytes: this.bytes, drawn, missed, lost, reason: this.#reason }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#idle.end()
    this.#retry?.cancel()
    this.#closed.abort(new SallyportError('ERR_SERVER_UNAVAILABLE', `${this.server.name} needs no sandboxes`))
    const all = this.#waiting.map((one) => this.#take(one))
    await Promise.all([this.#building, ...all.map((one) => one?.[Symbol.asyncDispose]())])
  }

  #build(): void {
    if (this.#building === null && this.#isShort) this.#building = this.#buildAll()
  }

  /** One after another, so that what is in use has the machine. Never rejects. */
  async #buildAll(): Promise<void> {
    while ((await this.#buildOne()) && this.#isShort);
    this.#building = null
  }

  get #isShort(): boolean {
    if (this.#retry !== null || this.#closed.signal.aborted) return false
    if (this.#waiting.length >= this.server.pool.size) return false
    const hasRoom = this.#options.hasRoomFor(this.#lastBytes)
    if (!hasRoom) this.#reason = noRoom
    return hasRoom
  }

  /** True where it waits now, and another one may be built. */
  async #buildOne(): Promise<boolean> {
    const { build, measure, hasRoomFor } = this.#options
    const { signal } = this.#closed
    let outfit: Outfit
    try {
      outfit = await build(signal)
    } catch (thrown) {
      if (!signal.aborted) this.#failed('pool/not-built', SallyportError.from(thrown), 0)
      return false
    }
    const { warm } = outfit
    const bytes = warm === null ? 0 : measure(warm)
    if (signal.aborted || warm === null || !hasRoomFor(bytes)) {
      if (!signal.aborted) this.#reason = noRoom
      this.#lastBytes = bytes
      await outfit[Symbol.asyncDispose]()
      return false
    }
    this.#lastBytes = bytes
    this.#reason = null
    this.#keep(outfit, warm, bytes)
    return true
  }

  #keep(outfit: Outfit, warm: WarmSandbox, bytes: number): void {
    const { ageMs } = this.server.pool
    const ages = setTimeout(() => void this.#replace(one), ageMs).unref()
    const one: Waiting = { outfit, bytes, ages }
    this.#waiting = [...this.#waiting, one]
    void this.#follow(one, warm)
  }

  /** Sees to it that one that ends before it is drawn, or given up, is followed by another. */
  async #follow(one: Waiting, { ended }: WarmSandbox): Promise<void> {
    const since = performance.now()
    const { reason } = await ended
    const outfit = this.#take(one)
    if (outfit === null) return
    this.#counts.lost++
    const lost = new SallyportError('ERR_SANDBOX_SETUP', `a sandbox that waited for a call ended: ${reason}`)
    this.#failed('pool/lost', lost, performance.now() - since)
    await outfit[Symbol.asyncDispose]()
  }

  /** Too old: what the machine is by now may differ from what it was then. */
  async #replace(one: Waiting): Promise<void> {
    const outfit = this.#take(one)
    this.#build()
    await outfit?.[Symbol.asyncDispose]()
  }

  #take(one: Waiting | undefined): Outfit | null {
    if (one === undefined || !this.#waiting.includes(one)) return null
    clearTimeout(one.ages)
    this.#waiting = this.#waiting.filter((other) => other !== one)
    return one.outfit
  }

  #failed(type: string, { code, message }: SallyportError, stoodMs: number): void {
    this.#reason = message
    // Calls have sandboxes of their own then, and say what is wrong; here it is tried at that pace for ever.
    const verdict = this.#schedule.after({ readyMs: stoodMs, retryable: true })
    const retryMs = verdict.action === 'retry' ? verdict.delayMs : 0
    this.#options.tell(type, { code, reason: message, retry_ms: retryMs })
    if (this.#retry !== null || this.#closed.signal.aborted) return
    this.#retry = new Due(retryMs, () => {
      this.#retry = null
      this.#build()
    })
  }
}

const noRoom = 'pool.memory_bytes holds no more sandboxes'
