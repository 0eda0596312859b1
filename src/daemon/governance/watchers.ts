// Who shows a server's lists to a host, and is told where policy lets another part of them be seen.

export class Watchers {
  readonly #changed = new Map<string, Set<() => void>>()

  /** Tells of that server until the returned function is called. */
  add(server: string, changed: () => void): () => void {
    const watch = (): void => changed() // of its own, so that who comes twice goes once
    const all = this.#changed.get(server) ?? new Set()
    this.#changed.set(server, all.add(watch))
    return () => {
      all.delete(watch)
      if (all.size === 0 && this.#changed.get(server) === all) this.#changed.delete(server)
    }
  }

  tell(server: string): void {
    for (const changed of this.#changed.get(server) ?? []) changed()
  }

  tellAll(): void {
    for (const server of this.#changed.keys()) this.tell(server)
  }
}
