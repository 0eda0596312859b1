// The servers that a daemon has: those of the configuration, and those that were registered or launched since.
import { dirname } from 'node:path'
import type { Host } from '../config/host.ts'
import { settingsOf } from '../config/load.ts'
import { SallyportError } from '../errors.ts'
import type { CredentialSource } from '../schema/credentials.ts'
import type { LaunchRequest } from '../rpc/governed.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'
import type { Foldable } from './governance/keeping.ts'
import { liveSettings } from './governance/live-settings.ts'
import type { Durable } from './governance/recorder.ts'

/** A server's entry as the operator wrote it. */
export interface Registered {
  readonly server: string
  readonly entry: Readonly<Record<string, unknown>>
  /** Folder from which its relative paths go */
  readonly directory: string
  readonly by: string
}

/** A server that a host launched: what it asked for, and the principal who alone may see it. */
export interface Launched {
  readonly owner: string
  readonly request: LaunchRequest
}

/** One configuration, with the servers and profiles that came beside its own. */
interface Roll {
  readonly settings: Settings
  readonly servers: Map<string, ServerSettings>
  readonly profiles: Map<string, ProfileSettings>
  readonly configured: ReadonlySet<string>
}

type Judged = { readonly server: ServerSettings; readonly profile: ProfileSettings }

/** A server that the configuration does not allow any more, and why. */
export interface LeftOut {
  readonly server: string
  readonly code: string
  readonly reason: string
}

/** The servers of the configuration that holds and those beside it, which come and go while the daemon runs. */
export class Roster implements Foldable {
  /** The settings that hold, whichever those are: everybody may keep this object */
  readonly settings: Settings
  #roll: Roll
  /** Raised by whatever changes the servers */
  #revision = 0
  readonly #registered = new Map<string, Registered>()
  readonly #launched = new Map<string, Launched>()
  readonly #host: Host

  constructor(settings: Settings, host: Host) {
    this.#roll = rollOf(settings)
    this.#host = host
    this.settings = liveSettings(() => this.#roll.settings)
  }

  /** The settings that hold at present; other ones after a reload. */
  readonly current = (): Settings => this.#roll.settings

  get revision(): number {
    return this.#revision
  }

  /** Principal that launched a server and alone may see it, or null. */
  ownerOf(server: string): string | null {
    return this.#launched.get(server)?.owner ?? null
  }

  /** Number of servers that one principal has launched. */
  launchedBy(principal: string): number {
    return [...this.#launched.values()].filter(({ owner }) => owner === principal).length
  }

  /** Number of servers that hosts have launched. */
  get launched(): number {
    return this.#launched.size
  }

  isConfigured(server: string): boolean {
    return this.#roll.configured.has(server)
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

  /** True for a server that the operator registered, also while the configuration does not allow it. */
  isRegistered(server: string): boolean {
    return this.#registered.has(server)
  }

  /** What was registered and is not in the configuration, which wins where both name a server. */
  registered(): readonly Registered[] {
    return [...this.#registered.values()].filter(({ server }) => !this.isConfigured(server))
  }

  /**
   * Judges an entry as if it stood in the configuration: same schema, same commands, same ceiling. Throws what loading
   * a configuration throws.
   */
  judge(server: string, entry: Registered['entry'], place: Place): Promise<Judged> {
    return judge(this.#roll, server, entry, { ...place, host: this.#host })
  }

  /** Judges what a host launches as the configuration's `dynamic` has it. */
  judgeLaunch(launched: Launched): Promise<Judged> {
    return this.judge(launched.request.name, launchEntry(this.settings, launched), { scope: 'dynamic' })
  }

  /** Takes a judged server. */
  add(judged: Judged, launched: Launched | null): void {
    this.#revision += 1
    enter(this.#roll, judged)
    if (launched !== null) this.#launched.set(judged.server.name, launched)
  }

  remove(server: string): void {
    this.#revision += 1
    if (!this.isConfigured(server)) this.#roll.servers.delete(server)
    this.#registered.delete(server)
    this.#launched.delete(server)
  }

  /**
   * Goes over to another configuration, in one turn, in which `goneOver` is called. What was registered or launched is judged by
   * it before; `leaving` is told of launched servers that it does not allow, and waited for.
   */
  async goOver(settings: Settings, { leaving, goneOver }: Transition): Promise<void> {
    const left = new Set<string>()
    for (;;) {
      const revision = this.#revision
      const { roll, leftOut } = await this.#judgeAll(settings)
      for (const { server } of leftOut) {
        if (!this.#launched.has(server) || left.has(server)) continue
        left.add(server)
        await leaving(server)
      }
      if (revision !== this.#revision) continue // others came or went meanwhile
      const before = this.#roll.settings
      this.#roll = roll
      this.#revision += 1
      for (const server of left) this.#launched.delete(server)
      return goneOver(before, leftOut)
    }
  }

  async #judgeAll(
    settings: Settings,
  ): Promise<{ readonly roll: Roll; readonly leftOut: readonly LeftOut[] }> {
    const roll = rollOf(settings)
    const leftOut: LeftOut[] = []
    const registered = [...this.#registered.values()].map(({ server, entry, directory }) => ({
      server,
      isLaunched: false,
      entry: () => entry,
      place: { directory, scope: 'registered' as const },
    }))
    const launched = [...this.#launched].map(([server, one]) => ({
      server,
      isLaunched: true,
      entry: () => launchEntry(settings, one),
      place: { scope: 'dynamic' as const },
    }))
    for (const { server, isLaunched, entry, place } of [...registered, ...launched]) {
      if (roll.configured.has(server) && !isLaunched) continue // the configuration wins
      try {
        if (roll.servers.has(server)) throw taken(server)
        enter(roll, await judge(roll, server, entry(), { ...place, host: this.#host }))
      } catch (error) {
        const { code, message } = SallyportError.from(error)
        leftOut.push({ server, code, reason: message })
      }
    }
    return { roll, leftOut }
  }
}

interface Transition {
  /** A server that a host launched is not allowed any more */
  readonly leaving: (server: string) => Promise<void>
  /** The settings of before do not hold any more */
  readonly goneOver: (before: Settings, leftOut: readonly LeftOut[]) => void
}

interface Place {
  readonly directory?: string
  readonly scope: ServerSettings['scope']
}

function rollOf(loaded: Settings): Roll {
  const servers = new Map(loaded.servers)
  const profiles = new Map(loaded.profiles)
  const settings = { ...loaded, servers, profiles }
  return { settings, servers, profiles, configured: new Set(loaded.servers.keys()) }
}

function enter({ servers, profiles }: Roll, { server, profile }: Judged): void {
  servers.set(server.name, server)
  if (!profiles.has(profile.name)) profiles.set(profile.name, profile)
}

const taken = (server: string): SallyportError =>
  new SallyportError('ERR_SERVER_EXISTS', `the configuration has a server ${server} of its own now`, {
    server,
  })

/** The entry that `dynamic` makes of what a host asks for; throws ERR_DYNAMIC_REFUSED where hosts may launch nothing. */
export function launchEntry({ dynamic }: Settings, { owner, request }: Launched): Registered['entry'] {
  const { name, command, args = [], package: code } = request
  if (!dynamic.enabled)
    throw notLaunched(name, 'dynamic.enabled is false', 'the operator sets it to true in the configuration')
  return {
    command,
    args,
    ...(code === undefined ? {} : { package: code }),
    profile: dynamic.profile,
    trust: dynamic.trust,
    acceptance: dynamic.acceptance,
    tools: { allow: dynamic.allow },
    justification: `launched by uid ${owner}, as the operator's dynamic settings allow`,
  }
}

/** A host's launch that is refused: why, and what helps. */
export const notLaunched = (server: string, why: string, mend: string): SallyportError =>
  new SallyportError('ERR_DYNAMIC_REFUSED', `${server} was not launched: ${why}; ${mend}`, { server })

async function judge(
  { settings, profiles }: Roll,
  server: string,
  entry: Registered['entry'],
  { directory, scope, host }: Place & { readonly host: Host },
): Promise<Judged> {
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
    driver: settings.driver,
    credentials: writtenSources(settings.credentials),
    servers: { [server]: entry },
  }
  const beside = dirname(settings.sources[0]?.path ?? '/')
  const judged = await settingsOf(value, directory ?? beside, host)
  const found = judged.servers.get(server)
  const profile = judged.profiles.get(found?.profile ?? '')
  if (found === undefined || profile === undefined) throw new Error(`${server} has no settings`)
  const known = profiles.get(profile.name)
  if (known !== undefined && known.path !== profile.path)
    throw new SallyportError(
      'ERR_PROFILE_INVALID',
      `${server}: the profile ${profile.name} is ${profile.path} there, and ${known.path} for the servers that run already; rename one of the two`,
      { server, profile: profile.name },
    )
  return { server: { ...found, scope }, profile }
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
