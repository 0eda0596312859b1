// The instances of one session: the one that serves it, and those that are on their way out.
import { SallyportError } from '../../errors.ts'
import type { SandboxProcess } from '../../sandbox/driver.ts'
import type { InstanceView } from '../../rpc/protocol.ts'
import { whyClosed } from '../instance/process-end.ts'
import { Instance } from '../instance/instance.ts'
import type { Aftermath, Lost } from '../instance/life.ts'
import { type Serving, SharedPlace } from '../shared/serving.ts'
import type { Running } from '../ports.ts'
import { lose, type SessionOptions } from './options.ts'
import type { Guest } from '../shared/seat.ts'

type Note = (type: string, detail: Readonly<Record<string, unknown>>) => void

export class SessionInstances {
  readonly #options: SessionOptions
  readonly #note: Note
  readonly #guest: Guest
  readonly #all = new Set<Serving>()
  readonly #unproven = Promise.withResolvers<never>()
  /** Whether there ever was one */
  isUsed = false
  /** The one that the host speaks with, or null */
  serving: Serving | null = null

  constructor(options: SessionOptions, note: Note, guest: Guest) {
    this.#options = options
    this.#note = note
    this.#guest = guest
    this.#unproven.promise.catch(() => undefined) // mostly nobody waits for it
  }

  /** Rejects where all were stopped and there is no proof that nothing of them is left. */
  get unproven(): Promise<never> {
    return this.#unproven.promise
  }

  /** Resolves when nothing is left of those that could not be proven to be gone. */
  get gone(): Promise<unknown> {
    return Promise.all([...this.#all].map((instance) => instance.gone))
  }

  /** A further one; nothing is started, and it serves once it is told to. */
  add(afterLoss: (lost: Lost) => Aftermath): Serving {
    const { server, caller, ports, logs, shared } = this.#options
    this.isUsed = true
    if (shared !== null) {
      const place = new SharedPlace(shared, this.#guest, server.stop.eofMs)
      this.#all.add(place)
      return place
    }
    const { launch, emit } = ports
    const principal = caller.principal.id
    const instance = new Instance({ server, purpose: 'session', principal, launch, emit, logs, afterLoss })
    this.#all.add(instance)
    return instance
  }

  /** Launches it, where the server may be tried by now. Fails as a launch does. */
  async start(instance: Serving): Promise<Running> {
    this.#options.attempt?.begin()
    return instance.start()
  }

  /** It serves: whatever its server failed at before is past. */
  ready(instance: Serving): void {
    instance.ready()
    this.#options.attempt?.ready()
  }

  /** Why its session ends whose process has closed its output: `left`, where the host was gone by then. Else that is a loss. */
  async whyClosed(instance: Serving, process: SandboxProcess, left: () => string | null): Promise<string> {
    const reason = await whyClosed(process, 'the server closed its output')
    const { state } = instance
    // One whose end is known by now was counted.
    if (left() === null && (state === 'starting' || state === 'ready'))
      lose(this.#options, { reason, readyMs: state === 'ready' ? 0 : null, retryable: true, exit: null })
    return left() ?? reason
  }

  views(): readonly InstanceView[] {
    return [...this.#all].flatMap((one) => (one instanceof Instance ? [one.view()] : []))
  }

  /** Resolves when nothing of it is left, or with why that is not proven, which is told; the one that serves is still shown. */
  async stop(instance: Serving, reason: string): Promise<SallyportError | null> {
    try {
      await instance.stop(reason)
      await instance.gone
      if (instance !== this.serving) this.#all.delete(instance)
      return null
    } catch (thrown) {
      const error = SallyportError.from(thrown)
      this.#note('session/not-gone', { reason: error.message })
      return error
    }
  }

  /** The same for all of them; whether that is proven. */
  async stopAll(reason: string): Promise<boolean> {
    const ends = await Promise.all([...this.#all].map((instance) => this.stop(instance, reason)))
    const stuck = ends.find((error) => error !== null) ?? null
    if (stuck !== null) this.#unproven.reject(stuck)
    return stuck === null
  }
}
