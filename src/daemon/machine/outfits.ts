// The outfits of everything that runs, and what governance asks of them: leases for calls, and who was in flight when.
import type { CallEquipment, LeaseAsk } from '../../call/ports.ts'
import { mostConcurrent } from '../../call/turns.ts'
import { SallyportError } from '../../errors.ts'
import { BriefMap, oursAlone } from '../../lib/brief-map.ts'
import { within } from '../../lib/deadline.ts'
import { type InstanceId, newInstanceId } from '../../lib/ids.ts'
import type { LaunchSupply, WarmSandbox } from '../../sandbox/launch.ts'
import type { Lease } from '../../schema/credentials.ts'
import type { Admission, Waiting } from '../../schema/governor.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../../schema/settings.ts'
import { type FlyingCall, Outfit, type OutfitParts } from './outfit.ts'

const nothing: CallEquipment = { process: null, secrets: null, end: () => undefined }

/** Where nothing has a network or a credential. */
export const noOutfits: Pick<Outfits, 'foresee' | 'equip' | 'settle'> = {
  foresee: () => null,
  equip: () => nothing,
  settle: () => null,
}

/** What an end may take beyond the server's own ladder, ms */
const proofMs = 2000

/** What a launch is to add, or the sandbox that was built with it before. */
export type Fitting = { readonly outfit: Outfit } & (
  | { readonly supply: LaunchSupply; readonly warm: null }
  | { readonly supply: null; readonly warm: WarmSandbox }
)

/** Sandboxes that wait for calls. */
export interface WarmOutfits {
  /** In this turn, the outfit of one that waits for a call of that server, which is the caller's then; null where none does */
  draw(server: ServerSettings): Outfit | null
  /** Whether it is what a launch would make now; where it isn't, none that waits beside it is */
  fits(outfit: Outfit, waiting: Waiting): Promise<boolean>
}

/** Whoever made it disposes of it, after the servers. */
export class Outfits implements AsyncDisposable {
  readonly #settings: Pick<Settings, 'servers'>
  readonly #parts: OutfitParts
  readonly #outfits = new Map<InstanceId, Outfit>()
  /** Call -> the outfit that it is in flight in */
  readonly #flying = new BriefMap<Outfit>(oursAlone)
  #warm: WarmOutfits | null = null
  /** Whoever waits for a process of a call to be gone */
  #gone = Promise.withResolvers<void>()

  constructor(settings: Pick<Settings, 'servers'>, parts: OutfitParts) {
    this.#settings = settings
    this.#parts = parts
  }

  /** From now on calls that have processes of their own take what waits there. */
  drawFrom(warm: WarmOutfits): void {
    this.#warm = warm
  }

  /** Makes the outfit of a process that a call will have, and no call has yet: its maker's until it is drawn. */
  forCallToCome(server: ServerSettings): Outfit {
    return new Outfit({ server, instance: newInstanceId(), isOfCall: true }, this.#parts)
  }

  /**
   * What a launch is to add. Rejects with ERR_CREDENTIAL_… where a source of the server's secrets fails: then the server
   * has nothing to work with. Null where it needs nothing. Whoever launches disposes of the outfit when the process has ended, or never came.
   */
  async forLaunch(
    server: ServerSettings,
    profile: ProfileSettings,
    instance: InstanceId,
    { signal, principal }: { readonly signal: AbortSignal; readonly principal: string },
  ): Promise<Fitting | null> {
    const { credentials } = server
    const prepared = this.#outfits.get(instance)
    if (credentials.length === 0 && prepared === undefined && profile.network.mode === 'none') return null
    if (credentials.length > 0 && prepared === undefined)
      await this.#parts.broker
        .probe(credentials, { signal })
        .catch((error: unknown) => this.#fail(server, error))
    const outfit = prepared ?? this.#make(server, instance, false)
    try {
      const warm = outfit.launchFor(principal)
      return warm === null
        ? { outfit, supply: await outfit.supply(profile), warm }
        : { outfit, supply: null, warm }
    } catch (error) {
      await this.dispose(outfit)
      throw error
    }
  }

  async dispose(outfit: Outfit): Promise<void> {
    this.#outfits.delete(outfit.instance)
    for (const { call } of outfit.calls) this.#flying.delete(call)
    try {
      await outfit[Symbol.asyncDispose]()
    } finally {
      this.#gone.resolve()
      this.#gone = Promise.withResolvers()
    }
  }

  /** What an intent says of the secrets that its call will hold; null where it will hold none. */
  foresee({
    server: name,
    kind,
    credentials,
  }: Omit<LeaseAsk, 'permit'>): Readonly<Record<string, unknown>> | null {
    const server = this.#settings.servers.get(name)
    const given = server?.credentials.filter(({ use }) => credentials.includes(use)) ?? []
    if (server === undefined || given.length === 0) return null
    return {
      credentials: [...new Set(given.map(({ use }) => use))],
      exposed: given.some(({ inject }) => inject !== 'egress'),
      attribution: isOfCall(server, kind) ? 'call' : 'window',
    }
  }

  /** Leases what the call may use, and counts it in. */
  equip(ask: LeaseAsk, waiting: Waiting): Promise<CallEquipment> | CallEquipment {
    const server = this.#settings.servers.get(ask.server)
    if (server === undefined) return nothing
    if (isOfCall(server, ask.kind)) return this.#equipOwn(server, ask, waiting)
    const outfit = ask.instance === null ? undefined : this.#outfits.get(ask.instance)
    if (outfit === undefined) return nothing
    const names = namesOf(server, ask.credentials)
    const ready = (): Promise<CallEquipment> | CallEquipment =>
      names.length > 0 ? this.#lease(outfit, names, 'window', ask, waiting) : this.#begin(outfit, ask, null)
    return outfit.parted()?.then(ready) ?? ready()
  }

  /** The call is settled; returns what became of its secrets, for the record. */
  settle({ call }: Pick<Admission, 'call'>): Readonly<Record<string, unknown>> | null {
    if (this.#flying.size === 0) return null
    const outfit = this.#flying.get(call)
    if (outfit === undefined) return null
    this.#flying.delete(call)
    const flying = outfit.end(call)
    const lease = flying?.lease ?? null
    // Of a process that was never started nobody else will ever speak.
    if (!outfit.isLaunched) void this.dispose(outfit)
    return flying === null || lease === null ? null : recordOf(flying, lease)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#outfits.values()].map((outfit) => this.dispose(outfit)))
  }

  #make(server: ServerSettings, instance: InstanceId, ofCall: boolean): Outfit {
    const outfit = new Outfit({ server, instance, isOfCall: ofCall }, this.#parts)
    this.#outfits.set(instance, outfit)
    return outfit
  }

  /** A process of its own has secrets of its own: its placeholders are in no other one, and end with it. */
  async #equipOwn(server: ServerSettings, ask: LeaseAsk, waiting: Waiting): Promise<CallEquipment> {
    const most = mostConcurrent(server)
    const busy = (): SallyportError =>
      new SallyportError(
        'ERR_BUSY',
        `uid ${ask.principal} has ${most} calls of ${server.name} in processes of their own, none of which ends; call again`,
        { server: server.name },
      )
    // Who was answered may call again at once, however long the process of before takes to end.
    const { eofMs, termMs } = server.stop
    const end = performance.now() + eofMs + termMs + proofMs
    const ownNow = (): readonly Outfit[] => this.#ownOf(server, ask.principal)
    for (let own = ownNow(); own.length >= most; own = ownNow()) {
      const leftMs = end - performance.now()
      if (leftMs <= 0 || !own.some(({ isOver }) => isOver)) throw busy()
      await within(this.#gone.promise, leftMs, busy, waiting.signal)
    }
    const outfit = await this.#outfitOfCall(server, ask.principal, waiting)
    const names = namesOf(server, ask.credentials)
    try {
      return names.length > 0
        ? await this.#lease(outfit, names, 'call', ask, waiting)
        : this.#begin(outfit, ask, null)
    } catch (error) {
      await this.dispose(outfit)
      throw error
    }
  }

  #ownOf({ name }: ServerSettings, principal: string): readonly Outfit[] {
    return [...this.#outfits.values()].filter(
      (outfit) => outfit.isOfCall && outfit.server.name === name && outfit.principal === principal,
    )
  }

  /** One that waits with a sandbox around it, where it is as good as a new one. */
  async #outfitOfCall(server: ServerSettings, principal: string, waiting: Waiting): Promise<Outfit> {
    const make = (): Outfit => {
      const made = this.#make(server, newInstanceId(), true)
      made.principal = principal
      return made
    }
    const drawn = this.#warm?.draw(server) ?? null
    if (drawn === null) return make()
    drawn.principal = principal
    this.#outfits.set(drawn.instance, drawn)
    try {
      if ((await this.#warm?.fits(drawn, waiting)) === true) return drawn
    } catch (error) {
      await this.dispose(drawn)
      throw error
    }
    const fresh = make()
    void this.dispose(drawn)
    return fresh
  }

  async #lease(
    outfit: Outfit,
    names: readonly string[],
    attribution: Lease['attribution'],
    ask: LeaseAsk,
    { signal }: Waiting,
  ): Promise<CallEquipment> {
    const { secrets, server } = outfit
    if (secrets === null) return this.#begin(outfit, ask, null)
    const { permit, call } = ask
    // A process of its own has to come up first.
    const { callMs, initializeMs } = server.timeouts
    const deadlineMs = attribution === 'call' ? callMs + 2 * initializeMs : callMs
    const lease = await secrets
      .lease({ permit, call, names, deadlineMs, attribution }, { signal })
      .catch((error: unknown) => this.#fail(server, error))
    return this.#begin(outfit, ask, lease)
  }

  /** Hosts hear that it failed and nothing more; why is for operators, and the error's cause, which goes to no socket. */
  #fail({ name }: ServerSettings, thrown: unknown): never {
    const error = SallyportError.from(thrown)
    if (error.code !== 'ERR_CREDENTIAL_SOURCE' && error.code !== 'ERR_CREDENTIAL_REFUSED') throw error
    this.#parts.failed(name, error)
    const what = `authentication failed for mcp server ${name}`
    throw new SallyportError(error.code, what, { server: name }, { cause: error })
  }

  #begin(outfit: Outfit, ask: LeaseAsk, lease: Lease | null): CallEquipment {
    const { call, kind, subject, sideEffects } = ask
    const hasNetwork = kind === 'method' || sideEffects.includes('network')
    outfit.begin({ call, subject, hasNetwork, lease })
    this.#flying.set(call, outfit)
    return {
      process: isOfCall(outfit.server, kind) ? outfit.instance : null,
      secrets: lease === null ? null : { names: lease.names, meta: lease.meta() },
      end: () => void this.settle({ call }),
    }
  }
}

const isOfCall = ({ instance }: ServerSettings, kind: LeaseAsk['kind']): boolean =>
  instance === 'call' && kind === 'tool'

const namesOf = ({ credentials }: ServerSettings, declared: readonly string[]): readonly string[] => [
  ...new Set(credentials.map(({ use }) => use).filter((name) => declared.includes(name))),
]

const recordOf = ({ beside }: FlyingCall, { names, exposed, attribution }: Lease) => ({
  credentials: names,
  exposed,
  attribution,
  // In one process nobody can tell whose a request was: so all that could have made it are named.
  calls: attribution === 'window' ? [...(beside ?? [])] : [],
})
