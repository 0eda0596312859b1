// What the engine tells of this daemon's containers while they run, over one connection for all of them.
import type { Readable } from 'node:stream'
import { unlessAborted } from '../../lib/deadline.ts'
import type { ContainerEvent } from './answers.ts'
import type { Engine } from './engine.ts'

/** Hears what happens to one container; `lost` when the engine has ended the connection over which it would be heard. */
export type Hearing = (action: string) => void

export class EngineWatch implements Disposable {
  readonly #engine: Engine
  readonly #label: string
  readonly #hearings = new Map<string, Hearing>()
  #stream: Promise<Readable> | null = null

  constructor(engine: Engine, label: string) {
    this.#engine = engine
    this.#label = label
  }

  /** Listens, where nobody does yet: before a container starts, so that nothing of it is missed. Throws as the engine does. */
  async listen({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    // Opened for all: whoever asked first may give up, and the others still wait.
    this.#stream ??= this.#open().catch((error: unknown) => {
      this.#stream = null
      throw error
    })
    await unlessAborted(this.#stream, signal)
  }

  /** Tells of the container from now on, until disposed of. */
  of(id: string, hear: Hearing): Disposable {
    this.#hearings.set(id, hear)
    return { [Symbol.dispose]: () => void this.#hearings.delete(id) }
  }

  [Symbol.dispose](): void {
    void this.#stream?.then(
      (stream) => stream.destroy(),
      () => undefined,
    )
  }

  async #open(): Promise<Readable> {
    const tell = ({ id, action }: ContainerEvent): void => this.#hearings.get(id)?.(action)
    const stream = await this.#engine.events(this.#label, tell)
    stream
      .on('error', () => {})
      .once('close', () => {
        this.#stream = null
        for (const hear of this.#hearings.values()) hear('lost')
      })
    return stream
  }
}
