// What a daemon says of its configuration: which servers there are, and the events of its reloads.
import type { Client } from '../../src/client/client.ts'
import { SallyportError } from '../../src/errors.ts'
import type { SallyportEvent } from '../../src/rpc/protocol.ts'
import { inGoodTime } from '../support/pace.ts'

/** How soon a daemon at rest has gone over to what it was told of: it stops what that changes first */
export const reloadMs = 30_000

/** Those of the configuration, by name. */
export const namesOf = async (client: Client): Promise<readonly string[]> =>
  (await client.call('servers/list', {})).servers
    .map(({ name }) => name)
    .filter((name) => !name.startsWith('mine-'))
    .toSorted()

/** What the daemon says of its configuration from now on. */
export class Heard implements AsyncDisposable {
  readonly #all: SallyportEvent[] = []
  readonly #over = new AbortController()
  #done: Promise<void> = Promise.resolve()

  static async from(client: Client): Promise<Heard> {
    const heard = new Heard()
    const { promise: subscribed, resolve } = Promise.withResolvers<void>()
    heard.#done = heard.#listen(client, resolve).catch((error: unknown) => {
      if (!(error instanceof SallyportError)) throw error
    })
    await Promise.race([subscribed, heard.#done])
    return heard
  }

  async #listen(client: Client, subscribed: () => void): Promise<void> {
    for await (const event of client.events({ signal: this.#over.signal, subscribed }))
      if (event.type.startsWith('config/')) this.#all.push(event)
  }

  count(type: string): number {
    return this.#all.filter((event) => event.type === type).length
  }

  /** Whether one that was gone over to names this server. */
  tells(server: string): boolean {
    return this.#all.some(
      ({ type, detail }) => type === 'config/applied' && JSON.stringify(detail).includes(`"${server}"`),
    )
  }

  /** Whether that comes, or has. */
  async has(type: string, ms = 5000): Promise<boolean> {
    return await inGoodTime(() => this.count(type) > 0, ms).catch(() => false)
  }

  /** The first that comes, or has; null where none does. */
  async next(): Promise<SallyportEvent | null> {
    return await inGoodTime(() => this.#all[0], reloadMs).catch(() => null)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort()
    await this.#done
  }
}
