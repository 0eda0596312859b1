// Names that servers of the operator's have had, in the configuration or registered: each stays the operator's, whatever came of its server.
import type { Foldable } from './governance/keeping.ts'
import type { Durable } from './governance/recorder.ts'

/** Names of the operator's servers, as the journal adds up to them; none ever goes. */
export class FormerNames implements Foldable {
  readonly #names = new Set<string>()

  has(server: string): boolean {
    return this.#names.has(server)
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#names[Symbol.iterator]()
  }

  fold({ type, body }: Pick<Durable, 'type' | 'body'>): void {
    if (type === 'server.registered') this.#names.add((body as { server: string }).server)
    else if (type === 'config.applied')
      for (const { server } of (body as { servers: readonly { server: string }[] }).servers)
        this.#names.add(server)
  }

  /** The names, as JSON. */
  save(): readonly string[] {
    return [...this.#names]
  }

  /** Becomes what `save` gave, or with null what it is before any record. */
  load(saved: readonly string[] | null): void {
    this.#names.clear()
    for (const name of saved ?? []) this.#names.add(name)
  }
}
