// What one instance has beside its sandbox: its secrets, its way out, and the calls that are in flight in it.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { BriefMap, oursAlone } from '../../lib/brief-map.ts'
import type { CallId, InstanceId } from '../../lib/ids.ts'
import type { LaunchSupply, WarmSandbox } from '../../sandbox/launch.ts'
import { credentialFolder } from '../../sandbox/spec.ts'
import type {
  Broker,
  CredentialViolation,
  InterceptorAuthority,
  InterceptorOptions,
  Lease,
  Redactor,
  SandboxSecrets,
} from '../../schema/credentials.ts'
import type {
  Door,
  DoorOptions,
  DoorVerdict,
  EgressEndpoint,
  EgressEvent,
  EgressLimits,
  EgressPolicy,
  Interceptor,
} from '../../schema/egress.ts'
import type { ProfileSettings, ServerSettings } from '../../schema/settings.ts'
import { Tally } from './tally.ts'
import { caTarget, caVariables } from './ca-variables.ts'

/** What outfits are made with; `daemon/` gives the real ones. */
export interface OutfitParts {
  readonly broker: Broker
  readonly openDoor: (policy: EgressPolicy, options: DoorOptions) => Promise<Door>
  readonly createInterceptor: (options: InterceptorOptions) => Promise<Interceptor & InterceptorAuthority>
  readonly limits: EgressLimits
  /** Folder of the doors, one folder in it for each instance */
  readonly doors: string
  /** Told of everything at the door */
  readonly tell: (outfit: Outfit, event: EgressEvent) => void
  /** False while evidence cannot be written: then nothing leaves */
  readonly isRecording: () => boolean
  /** The server reached out while nothing that may do so was in flight */
  readonly strayed: (outfit: Outfit, target: EgressEndpoint) => void
  readonly misused: (outfit: Outfit, violation: CredentialViolation) => void
  /** A source of secrets failed: what operators may know of it, and hosts may not */
  readonly failed: (server: string, error: SallyportError) => void
}

/** A call that was admitted and is not settled. */
export interface FlyingCall {
  readonly call: CallId
  readonly subject: string
  /** Whether its tool is declared to use the network; other methods have no classes and may */
  readonly hasNetwork: boolean
  readonly lease: Lease | null
  /** Calls that were in flight in the same process at some time of this one; null without a lease, since nobody asks then */
  readonly beside: Set<CallId> | null
}

export interface OutfitRequest {
  readonly server: ServerSettings
  readonly instance: InstanceId
  /** Whether the process is one call's own, so that values may enter it */
  readonly isOfCall: boolean
}

/** Disposing kills the placeholders and closes the door; nothing of either is left. */
export class Outfit implements AsyncDisposable {
  readonly server: ServerSettings
  readonly instance: InstanceId
  readonly secrets: SandboxSecrets | null
  /** Those, or none: what others hold is looked for in what this one sends, too */
  readonly #held: SandboxSecrets
  /** Whether the process is one call's own */
  readonly isOfCall: boolean
  /** Uid whose instance it is; known once it is launched, or is a call's */
  principal: string | null = null
  readonly #parts: OutfitParts
  readonly #calls = new BriefMap<FlyingCall>(oursAlone)
  /** Of the calls in flight, those with a lease, and how many may reach out */
  readonly #leased = new Set<FlyingCall>()
  #reaching = 0
  /** A server that connects in a flood fills no journal */
  readonly #tally: Tally
  #door: Door | null = null
  #warm: WarmSandbox | null = null
  #isLaunched = false
  #isOver = false
  #gone: Promise<void> | null = null

  constructor({ server, instance, isOfCall }: OutfitRequest, parts: OutfitParts) {
    this.server = server
    this.instance = instance
    this.#parts = parts
    this.#tally = new Tally((event) => parts.tell(this, event))
    this.isOfCall = isOfCall
    const { credentials: injections } = server
    this.#held = parts.broker.forSandbox({
      server: server.name,
      instance,
      injections,
      violated: (violation) => parts.misused(this, violation),
    })
    this.secrets = injections.length === 0 ? null : this.#held
  }

  get redactor(): Redactor | null {
    return this.secrets?.redactor ?? null
  }

  get isLaunched(): boolean {
    return this.#isLaunched
  }

  /** It was made for one call, which is over. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** The calls in flight. */
  get calls(): readonly FlyingCall[] {
    return this.#calls.values()
  }

  begin({ call, subject, hasNetwork, lease }: Omit<FlyingCall, 'beside'>): void {
    for (const other of this.#leased) other.beside?.add(call)
    const beside = lease === null ? null : new Set(this.calls.map((other) => other.call))
    const flying = { call, subject, hasNetwork, lease, beside }
    if (lease !== null) this.#leased.add(flying)
    if (hasNetwork) this.#reaching += 1
    this.#calls.set(call, flying)
  }

  /** The call is over: its lease ends, and where nothing may reach out any more, what is open is cut. */
  end(call: CallId): FlyingCall | null {
    const flying = this.#calls.get(call)
    if (flying === undefined) return null
    flying.lease?.end()
    if (this.isOfCall) {
      this.#held.retire()
      this.#isOver = true
    }
    this.#calls.delete(call)
    this.#leased.delete(flying)
    if (flying.hasNetwork) this.#reaching -= 1
    if (this.server.egressWhen === 'calling' && !this.#isReachingOut)
      this.#door?.cut(() => true, 'doors-shut')
    return flying
  }

  /** Resolves when nothing in it takes what ended with a call for open; null where nothing may. */
  parted(): Promise<void> | null {
    return this.#door?.parted() ?? null
  }

  /** It is being launched for that principal; returns the sandbox that waits for it, whose owner is the caller now, or null. */
  launchFor(principal: string): WarmSandbox | null {
    this.principal = principal
    this.#isLaunched = true
    const warm = this.#warm
    this.#warm = null
    return warm
  }

  /** Gives it a sandbox that waits at its gate, and goes with it. */
  keepWarm(sandbox: WarmSandbox): void {
    this.#warm = sandbox
  }

  /** The sandbox that waits for it, or null. */
  get warm(): WarmSandbox | null {
    return this.#warm
  }

  /** The same for another sandbox, where the first is gone and nothing of the server ran in it: that one's way out is closed. */
  async supplyAgain(profile: ProfileSettings): Promise<LaunchSupply> {
    const door = this.#door
    this.#door = null
    await door?.[Symbol.asyncDispose]()
    return this.supply(profile)
  }

  /** Everything that the launch is to add to the sandbox; what a call's lease brings is asked for when the gate opens. */
  async supply(profile: ProfileSettings): Promise<LaunchSupply> {
    const { server, secrets } = this
    const swaps = server.credentials.some(({ inject }) => inject === 'egress')
    const made =
      secrets === null || !swaps
        ? null
        : await this.#parts.createInterceptor({
            server: server.name,
            instance: this.instance,
            life: this.isOfCall ? 'call' : 'session',
            ...secrets,
          })
    return {
      openDoor: profile.network.mode === 'none' ? null : ({ uid }) => this.#openDoor(uid, made),
      variables: { ...secrets?.environment, ...(made === null ? {} : caVariables) },
      files: made === null ? [] : [{ target: caTarget, content: made.bundle, mode: 0o444 }],
      hasSecretFiles: server.credentials.some(({ inject }) => inject === 'file'),
      secrets: () => this.#gateSecrets(),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone ??= this.#end()
    await this.#gone
  }

  async #openDoor(uid: number, interceptor: Interceptor | null): Promise<string> {
    const { server, instance } = this
    const { openDoor, limits, doors } = this.#parts
    const policy = { server: server.name, instance, grants: server.egress, limits }
    const watch = {
      event: (event: EgressEvent) => this.#tally.add(event),
      mayConnect: (target: EgressEndpoint) => this.#mayConnect(target),
    }
    const { screen } = this.#held
    const path = join(doors, instance, 'door')
    const door = await openDoor(policy, { watch, interceptor, screen, path, uid })
    if (this.#gone === null) this.#door = door
    else await door[Symbol.asyncDispose]()
    return door.path
  }

  get #isReachingOut(): boolean {
    return this.#reaching > 0
  }

  #mayConnect(target: EgressEndpoint): DoorVerdict {
    if (this.#gone !== null || !this.#isLaunched) return { open: false, reason: 'doors-shut' }
    if (!this.#parts.isRecording()) return { open: false, reason: 'not-recorded' }
    if (this.server.egressWhen === 'always' || this.#isReachingOut) return { open: true }
    if (this.#calls.size === 0) return { open: false, reason: 'doors-shut' }
    this.#parts.strayed(this, target)
    return { open: false, reason: 'no-network-class' }
  }

  /** Values for a call's own process; elsewhere as many random letters, since servers look whether there is something. */
  #gateSecrets(): ReturnType<LaunchSupply['secrets']> {
    const given = this.server.credentials.filter(({ inject }) => inject === 'env' || inject === 'file')
    const [flying] = this.#calls.values()
    const lease = this.isOfCall ? (flying?.lease ?? null) : null
    const environment: Record<string, string> = { ...lease?.environment() }
    const files = [...(lease?.files() ?? [])]
    for (const { inject, as } of given) {
      if (inject === 'env') environment[as] ??= randomBytes(20).toString('hex')
      else if (!files.some(({ variable }) => variable === as))
        files.push({ name: as, variable: as, content: Buffer.from(randomBytes(20).toString('hex')) })
    }
    for (const { name, variable } of files) {
      if (!/^[A-Za-z0-9_.-]+$/.test(name) || name.startsWith('.'))
        throw new SallyportError('ERR_INTERNAL', 'a secret file has a name that is no plain one')
      environment[variable] = `${credentialFolder}/${name}`
    }
    return { environment, files: files.map(({ name, content }) => ({ name, content })) }
  }

  async #end(): Promise<void> {
    for (const { lease } of this.#calls.values()) lease?.end()
    this.#calls.clear()
    this.#leased.clear()
    this.#reaching = 0
    this.#held[Symbol.dispose]()
    await this.#warm?.[Symbol.asyncDispose]()
    await this.#door?.[Symbol.asyncDispose]()
    this.#tally[Symbol.dispose]()
  }
}
