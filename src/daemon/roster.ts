// The servers that a daemon has: those of the configuration, and those that were registered or launched since.
import { dirname } from 'node:path'
import type { Host } from '../config/host.ts'
import { settingsOf } from '../config/load.ts'
import { SallyportError } from '../errors.ts'
import type { CredentialSource } from '../schema/credentials.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'
import type { Foldable } from './keeping.ts'
import type { Durable } from './recorder.ts'

/** A server's entry as the operator wrote it. */
export interface Registered {
  readonly server: string
  readonly entry: Readonly<Record<string, unknown>>
  /** Folder from which its relative paths go */
  readonly directory: string
  readonly by: string
}

/** Settings whose servers and profiles grow and shrink while the daemon runs; everybody holds the same ones. */
export class Roster implements Foldable {
  readonly settings: Settings
  readonly #servers: Map<string, ServerSettings>
  readonly #profiles: Map<string, ProfileSettings>
  readonly #configured: ReadonlySet<string>
  readonly #registered = new Map<string, Registered>()
  /** Server -> principal that launched it */
  readonly #owners = new Map<string, string>()
  readonly #host: Host

  constructor(settings: Settings, host: Host) {
    this.#servers = new Map(settings.servers)
    this.#profiles = new Map(settings.profiles)
    this.#configured = new Set(settings.servers.keys())
    this.#host = host
    this.settings = { ...settings, servers: this.#servers, profiles: this.#profiles }
  }

  /** Principal that launched a server and alone may see it, or null. */
  ownerOf(server: string): string | null {
    return this.#owners.get(server) ?? null
  }

  /** Number of servers that hosts have launched. */
  get launched(): number {
    return this.#owners.size
  }

  isConfigured(server: string): boolean {
    return this.#configured.has(server)
  }

  /** Folds what was recorded; nothing is judged yet. */
  fold({ type, body }: Pick<Durable, 'type' | 'body'>): void {
    if (type === 'server.registered') {
      const registered = body as Registered
      this.#registered.set(registered.server, registered)
    } else if (type === 'server.removed') this.#registered.delete((body as { server: string }).server)
  }

  /** What is registered, as JSON. */
  save(): readonly Registered[] {
    return [...this.#registered.values()]
  }

  /** Becomes what `save` gave, or with null what it is before any record. */
  load(saved: readonly Registered[] | null): void {
    this.#registered.clear()
    for (const registered of saved ?? []) this.#registered.set(registered.server, registered)
  }

  /** What was registered and is not in the configuration, which wins where both name a server. */
  registered(): readonly Registered[] {
    return [...this.#registered.values()].filter(({ server }) => !this.#configured.has(server))
  }

  /**
   * Judges an entry as if it stood in the configuration: same schema, same commands, same ceiling. Throws what loading
   * a configuration throws.
   */
  async judge(
    server: string,
    entry: Readonly<Record<string, unknown>>,
    { directory, scope }: { readonly directory?: string; readonly scope: ServerSettings['scope'] },
  ): Promise<{ readonly server: ServerSettings; readonly profile: ProfileSettings }> {
    const { settings } = this
    const value = {
      version: 1,
      allowed_commands: settings.allowedCommands.map(({ name, path, interpreter }) => ({
        name,
        ...(path === null ? {} : { path }),
        ...(interpreter === null ? {} : { interpreter }),
      })),
      command_path: settings.commandPath,
      interpreter_options: settings.interpreterOptions,
      mode: settings.mode,
      credentials: writtenSources(settings.credentials),
      servers: { [server]: entry },
    }
    const beside = dirname(settings.sources[0]?.path ?? '/')
    const judged = await settingsOf(value, directory ?? beside, this.#host)
    const found = judged.servers.get(server)
    const profile = judged.profiles.get(found?.profile ?? '')
    if (found === undefined || profile === undefined) throw new Error(`${server} has no settings`)
    const known = this.#profiles.get(profile.name)
    if (known !== undefined && known.path !== profile.path)
      throw new SallyportError(
        'ERR_PROFILE_INVALID',
        `${server}: the profile ${profile.name} is ${profile.path} there, and ${known.path} for the servers that run already; rename one of the two`,
        { server, profile: profile.name },
      )
    return { server: { ...found, scope }, profile }
  }

  /** Takes a judged server. */
  add(server: ServerSettings, profile: ProfileSettings, owner: string | null): void {
    this.#servers.set(server.name, server)
    if (!this.#profiles.has(profile.name)) this.#profiles.set(profile.name, profile)
    if (owner !== null) this.#owners.set(server.name, owner)
  }

  remove(server: string): void {
    this.#servers.delete(server)
    this.#registered.delete(server)
    this.#owners.delete(server)
  }
}

/** Sources as a configuration writes them. */
function writtenSources(sources: Settings['credentials']): Readonly<Record<string, unknown>> {
  const written = (source: CredentialSource): unknown => {
    switch (source.kind) {
      case 'env':
        return { env: source.variable }
      case 'file':
        return { file: source.path }
      case 'command':
        return { command: source.argv }
    }
  }
  return Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, written(source)]))
}
