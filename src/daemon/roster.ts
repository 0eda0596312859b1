// The servers that a daemon has: those of the configuration, and those that were registered or launched since.
import type { Host } from '../config/host.ts'
import { SallyportError } from '../errors.ts'
import { readName, readsAsOwnName } from '../lib/own-name.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'
import {
  expectSameProfile,
  judge,
  type Judged,
  launchEntry,
  type Launched,
  type Place,
  type Registered,
} from './entries.ts'
import { FormerNames } from './former-names.ts'
import type { Foldable } from './governance/keeping.ts'
import { liveSettings } from './governance/live-settings.ts'
import type { Durable } from './governance/recorder.ts'

/** One configuration, with the servers and profiles that came beside its own. */
interface Roll {
  readonly settings: Settings
  readonly servers: Map<string, ServerSettings>
  readonly profiles: Map<string, ProfileSettings>
  readonly configured: ReadonlySet<string>
}

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
  readonly formerNames = new FormerNames()
  readonly #registered = new Map<string, Registered>()
  readonly #launched = new Map<string, Launched>()
  /** Names under which something is about to come, with the host that launches it, or null: they are taken, and count */
  readonly #expected = new Map<string, { readonly owner: string | null }>()
  /** Those of which nothing new is to be known, since they go */
  readonly #leaving = new Set<string>()
  #goingOver: Promise<void> | null = null
  /** What it goes over to, while that is put on record */
  #next: Roll | null = null
  readonly #host: Host

  constructor(settings: Settings, host: Host) {
    this.#roll = rollOf(settings)
    this.#host = host
    this.settings = liveSettings(() => this.#roll.settings)
  }

  /** The settings that hold at present; other ones after a reload. */
  readonly current = (): Settings => this.#roll.settings

  /** Principal that launched a server and alone may see it, or null. */
  ownerOf(server: string): string | null {
    return this.#launched.get(server)?.owner ?? null
  }

  /** Who launched each server that a host has launched, or is launching. */
  launchers(): readonly string[] {
    const launching = [...this.#expected.values()].map(({ owner }) => owner).filter((owner) => owner !== null)
    return [...[...this.#launched.values()].map(({ owner }) => owner), ...launching]
  }

  /** Whether a server is there, to stay. */
  stands(server: string): boolean {
    return this.#roll.servers.has(server) && !this.#leaving.has(server)
  }

  /** Keeps a name, and room for one more of that host, until it is added or the returned object is disposed of. */
  expect(name: string, owner: string | null): Disposable {
    const kept = { owner }
    this.#expected.set(name, kept)
    return {
      [Symbol.dispose]: () => {
        if (this.#expected.get(name) === kept) this.#expected.delete(name) // or it is another's by now
      },
    }
  }

  /** Nothing is accepted of a server from now on, which is about to go; until it is removed, or what is returned is called. */
  leave(server: string): () => void {
    this.#leaving.add(server)
    return () => void this.#leaving.delete(server)
  }

  /** The names of the servers that are there, but for those that hosts launched. */
  operators(): readonly string[] {
    return [...this.#roll.servers.keys()].filter((name) => !this.#launched.has(name))
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

  /** True for the name of a server that the operator has, also while the configuration does not allow it, or once had. */
  isOperators(server: string): boolean {
    return this.#registered.has(server) || this.formerNames.has(server)
  }

  /** True for the name of a server that is there, or about to come, and for what reads as ours. */
  isTaken(server: string): boolean {
    return this.#roll.servers.has(server) || this.#expected.has(server) || readsAsOwnName(server)
  }

  /** Another server's name that a person could take this one for, with the principal whose it is, or null for the operator's; or null. */
  readsAs(server: string): { readonly name: string; readonly owner: string | null } | null {
    const read = readName(server)
    const names = [...this.#roll.servers.keys(), ...this.#expected.keys(), ...this.formerNames]
    const name = names.find((one) => one !== server && readName(one) === read)
    if (name === undefined) return null
    return { name, owner: this.ownerOf(name) ?? this.#expected.get(name)?.owner ?? null }
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

  /** Takes a judged server. Throws ERR_PROFILE_INVALID where another profile came under its profile's name meanwhile. */
  add(judged: Judged, launched: Launched | null): void {
    expectSameProfile(this.#roll.profiles, judged)
    this.#revision += 1
    this.#expected.delete(judged.server.name)
    enter(this.#roll, judged)
    if (launched !== null) this.#launched.set(judged.server.name, launched)
  }

  remove(server: string): void {
    this.#revision += 1
    for (const roll of [this.#roll, this.#next])
      if (roll?.configured.has(server) === false) roll.servers.delete(server)
    this.#registered.delete(server)
    this.#launched.delete(server)
    this.#leaving.delete(server)
  }

  /**
   * Goes over to another configuration, after `record`, and in one turn, in which `goneOver` is called. What was registered or
   * launched is judged by it before. Rejects as `record` does; then everything is as it was.
   */
  goOver(settings: Settings, transition: Transition): Promise<void> {
    const gone = this.#goOver(settings, transition)
    this.#goingOver = gone.catch(() => undefined).finally(() => (this.#goingOver = null))
    return gone
  }

  /** Ends when it is gone over to another configuration, or not; null while nobody does. Until then no server is to be added. */
  get goingOver(): Promise<void> | null {
    return this.#goingOver
  }

  async #goOver(settings: Settings, { expectApart, record, goneOver }: Transition): Promise<void> {
    const { roll, leftOut } = await this.#judgeStanding(settings, expectApart)
    const gone = leftOut.map(({ server }) => server).filter((server) => this.#launched.has(server))
    for (const server of gone) this.#leaving.add(server)
    this.#next = roll
    try {
      await record(gone)
      for (const server of gone) this.#launched.delete(server)
    } finally {
      this.#next = null
      for (const server of gone) this.#leaving.delete(server)
    }
    const before = this.#roll.settings
    this.#roll = roll
    this.#revision += 1
    goneOver(before, leftOut)
  }

  /** Judges those who are there when it has judged them. */
  async #judgeStanding(settings: Settings, expectApart: Transition['expectApart']): Promise<AllJudged> {
    for (;;) {
      const revision = this.#revision
      const judged = await this.#judgeAll(settings, expectApart)
      if (revision === this.#revision) return judged
    }
  }

  async #judgeAll(settings: Settings, expectApart: Transition['expectApart']): Promise<AllJudged> {
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
        const judged = await judge(roll, server, entry(), { ...place, host: this.#host })
        expectApart(judged.server)
        enter(roll, judged)
      } catch (error) {
        const { code, message } = SallyportError.from(error)
        leftOut.push({ server, code, reason: message })
      }
    }
    return { roll, leftOut }
  }
}

/** Another configuration, with what came beside the former one's servers and may stay. */
interface AllJudged {
  readonly roll: Roll
  readonly leftOut: readonly LeftOut[]
}

interface Transition {
  /** Throws where a server would run as somebody who is a host under these settings */
  readonly expectApart: (server: ServerSettings) => void
  /** Makes it durable that these settings hold, and that launched servers which they do not allow are gone: both, or neither */
  readonly record: (gone: readonly string[]) => Promise<void>
  /** The settings of before do not hold any more */
  readonly goneOver: (before: Settings, leftOut: readonly LeftOut[]) => void
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
