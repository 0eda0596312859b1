// What hosts have launched and nobody has removed: it is gone with its daemon, and what was accepted of it goes before the next one answers.
import type { Governance } from './governance/governance.ts'
import type { Foldable } from './governance/keeping.ts'
import type { Durable } from './governance/recorder.ts'

/** Names of launched servers, as the journal adds up to them. */
export class Launches implements Foldable {
  readonly #names = new Set<string>()

  fold({ type, body }: Pick<Durable, 'type' | 'body'>): void {
    const { server } = Object(body) as { server: string }
    if (type === 'server.launched') this.#names.add(server)
    // Whoever has the name since has it for good.
    else if (type === 'server.removed' || type === 'server.registered') this.#names.delete(server)
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

  /** Removes those of an earlier life of the daemon, on record. Rejects where that can't be made. */
  async end(governance: Pick<Governance, 'add'>, by: string): Promise<void> {
    const reason = 'it was gone with the daemon on which it was launched'
    for (const server of this.save())
      await governance.add({ type: 'server.removed', body: { server, by, scope: 'dynamic' } }, { reason })
  }
}
