// The instances of one session: the one that serves it, and those that are on their way out.
import { SallyportError } from '../errors.ts'
import type { InstanceView } from '../rpc/protocol.ts'
import { Instance } from './instance.ts'
import type { Aftermath, Lost } from './life.ts'
import type { SessionOptions } from './session-options.ts'

type Note = (type: string, detail: Readonly<Record<string, unknown>>) => void

export class SessionInstances {
  readonly #options: SessionOptions
  readonly #note: Note
  readonly #all = new Set<Instance>()
  /** The one that the host speaks with, or null */
  serving: Instance | null = null

  constructor(options: SessionOptions, note: Note) {
    this.#options = options
    this.#note = note
  }

  /** A further one; nothing is started, and it serves once it is told to. */
  add(afterLoss: (lost: Lost) => Aftermath): Instance {
    const { server, caller, ports, logs } = this.#options
    const { launch, emit } = ports
    const principal = caller.principal.id
    const instance = new Instance({ server, purpose: 'session', principal, launch, emit, logs, afterLoss })
    this.#all.add(instance)
    return instance
  }

  views(): readonly InstanceView[] {
    return [...this.#all].map((instance) => instance.view())
  }

  /** Resolves when nothing of it is left, or when it is told that something is; the one that serves is still shown. */
  async stop(instance: Instance, reason: string): Promise<void> {
    try {
      await instance.stop(reason)
      await instance.gone
      if (instance !== this.serving) this.#all.delete(instance)
    } catch (thrown) {
      this.#note('session/not-gone', { reason: SallyportError.from(thrown).message })
    }
  }

  async stopAll(reason: string): Promise<void> {
    await Promise.all([...this.#all].map((instance) => this.stop(instance, reason)))
  }
}
