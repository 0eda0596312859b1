// One server of the config: what is running of it, for whom, and whether anything may.
import { SallyportError } from '../errors.ts'
import type { InstanceView, ServerDetail, ServerView } from '../rpc/protocol.ts'
import type { ServerSettings } from '../schema/settings.ts'
import type { Generations } from './control/generations.ts'
import { ControlSlot } from './control/control-slot.ts'
import { ApartRuns } from './control/apart-runs.ts'
import { harmless, maxInstructions } from './control/tool-view.ts'
import { entryView } from './entry-view.ts'
import type { Lost } from './instance/life.ts'
import { LogRing } from './instance/log-ring.ts'
import { hasProcess } from './instance/states.ts'
import type { Caller, Policy, Ports } from './ports.ts'
import { Eras } from './message/probe.ts'
import { StormWatch } from './instance/restart.ts'
import { Questions } from './questions/questions.ts'
import { Session } from './session/session.ts'
import { serverState } from './server-state.ts'
import { Attempts } from './session/attempts.ts'
import { settleAll } from './instance/stop.ts'
import { TaskIds } from './lanes/tasks.ts'
import { quarantined, unavailable } from './message/unavailable.ts'

interface Heritage {
  /** The principal who launched it, or null */
  readonly owner?: string | null
  /** What had its name until now: who follows its logs goes on, and what was halted stays halted */
  readonly former?: RegisteredServer | null
}

/** Holds the instances of one server. Whoever made it disposes of it. */
export class RegisteredServer implements AsyncDisposable {
  readonly settings: ServerSettings
  readonly logs: LogRing
  readonly apart: ApartRuns
  /** The principal who launched it and alone may see it, or null: everybody may */
  readonly owner: string | null
  readonly #ports: Ports
  readonly #generations: Generations
  readonly #slots = new Map<string, ControlSlot>()
  readonly #sessions = new Set<Session>()
  readonly #tasks = new Map<string, TaskIds>()
  readonly #questions: Map<string, Questions>
  readonly #attempts = new Map<string, Attempts>()
  readonly #storm: StormWatch
  readonly #eras = new Eras()
  #quarantined: string | null = null
  /** When the last quarantine has stopped everything */
  #halted = Promise.resolve()
  #retired: string | null = null

  constructor(
    settings: ServerSettings,
    ports: Ports,
    generations: Generations,
    { owner = null, former = null }: Heritage = {},
  ) {
    this.settings = settings
    this.owner = owner
    this.#ports = ports
    this.#generations = generations
    this.#questions = former === null ? new Map<string, Questions>() : former.#questions
    this.logs = former?.logs ?? new LogRing(settings.output.stderrBytes)
    this.logs.resize(settings.output.stderrBytes)
    this.apart = new ApartRuns({ server: settings, logs: this.logs, ports })
    this.#storm = new StormWatch(settings.restart)
    this.#quarantined = former?.haltedFor ?? null
  }

  /** Why nothing of it may run, or null. */
  get haltedFor(): string | null {
    return this.#quarantined
  }

  /** Throws unless a process of this server may be started now; says which of the reasons it is. */
  requireUsable(): void {
    this.requireRunnable()
    const { name } = this.settings
    if (this.#retired !== null) throw unavailable(name, this.#retired)
    if (this.#quarantined !== null) throw unavailable(name, quarantined(name, this.#quarantined))
  }

  /** Throws unless this server could be started but for a quarantine. */
  requireRunnable(): void {
    const { name, enabled, disabledReason, unenforceable } = this.settings
    if (!enabled) {
      const reason = disabledReason ?? 'enabled is false'
      throw new SallyportError('ERR_SERVER_DISABLED', `mcp server ${name} is disabled: ${reason}`, {
        server: name,
      })
    }
    if (unenforceable.length > 0) {
      const what = unenforceable.join(', ')
      throw new SallyportError(
        'ERR_SANDBOX_UNENFORCEABLE',
        `mcp server ${name} asks for ${what}, which this version cannot enforce; take it out of the entry to start it without`,
        { server: name, controls: unenforceable },
      )
    }
  }

  /** The slot of a principal's control calls; made when first asked for, without starting anything. */
  slot(principal: string): ControlSlot {
    const { settings: server, logs } = this
    const lost = (loss: Lost): boolean => this.#lost(loss)
    const shared = { ports: this.#ports, logs, generations: this.#generations, lost }
    return kept(this.#slots, principal, () => new ControlSlot({ server, principal, ...shared }))
  }

  /** The same, or null before that: whoever only looks makes none, which would be shown as stopped. */
  madeSlot(principal: string): ControlSlot | null {
    return this.#slots.get(principal) ?? null
  }

  /** The slots that a caller may see. */
  slots(caller: Caller): readonly ControlSlot[] {
    return [...this.#slots].filter(([principal]) => sees(caller, principal)).map(([, slot]) => slot)
  }

  /** Starts the caller's control instance, and lets sessions start theirs again: whatever made them give up is forgotten. */
  async start(caller: Caller, waiting: { readonly signal: AbortSignal }): Promise<InstanceView> {
    for (const [principal, attempts] of this.#attempts) if (sees(caller, principal)) attempts.clear()
    this.#eras.forget((principal) => sees(caller, principal))
    const slot = this.slot(caller.principal.id)
    await slot.start(waiting)
    return slot.view()
  }

  /** Makes a session that waits for its stream; `policy` may be narrower than the config's own. */
  open(caller: Caller, policy: Policy): Session {
    const server = policy.settings.servers.get(this.settings.name) ?? this.settings
    const { launch, emit, pools } = this.#ports
    const isShared = this.settings.instance === 'shared'
    const session = new Session({
      server,
      caller,
      ports: { ...policy, launch, emit, pools },
      toolLimit: policy.settings.tools.perServer,
      logs: this.logs,
      verdicts: isShared ? { get: () => 'modern', set: () => undefined } : this.#eras.of(caller.principal.id),
      runsUnasked: false,
      shared: isShared ? this.slot(caller.principal.id) : null,
      lost: (loss) => void this.#lost(loss),
      attempt: isShared ? null : this.#attemptsOf(caller.principal.id).attempt(),
      tasks: kept(this.#tasks, caller.principal.id, () => new TaskIds()),
      questions: kept(this.#questions, caller.principal.id, () => new Questions()),
    })
    this.#sessions.add(session)
    void session.ended.then(() => this.#sessions.delete(session))
    return session
  }

  /** Stops what the caller may stop, all at once; resolves with the ids of what was running. */
  async stop(caller: Caller, reason: string): Promise<readonly InstanceView['id'][]> {
    const slots = this.slots(caller)
    const sessions = [...this.#sessions].filter(({ principal }) => sees(caller, principal))
    const running = [
      ...slots.flatMap((slot) => slot.views()),
      ...sessions.flatMap((session) => session.views()),
    ]
      .filter(({ state }) => hasProcess(state))
      .map(({ id }) => id)
    await settleAll([
      ...slots.map((slot) => slot.stop(reason)),
      ...sessions.map((session) => session.stop(reason)),
      ...this.apart.halt(reason, (principal) => sees(caller, principal)),
    ])
    // Nobody's, as long as somebody else uses the server.
    const everybody = { ...caller, role: 'operator' } as const
    if (!this.#instances(everybody).some(({ state }) => hasProcess(state))) await this.#drain(reason)
    return running
  }

  /** Stops everything for good: from this turn on no call of what runs is admitted. Resolves with the ids of what was running. */
  async retire(reason: string): Promise<readonly InstanceView['id'][]> {
    this.#retired = reason
    const views = [...this.#slots.values(), ...this.#sessions].flatMap((one) => one.views())
    for (const { id } of views) this.#ports.governor.forget(id)
    await this.#stopAll(reason)
    return views.filter(({ state }) => hasProcess(state)).map(({ id }) => id)
  }

  /** Stops everything, and starts nothing until it is released. */
  quarantine(reason: string): Promise<void> {
    this.#quarantined ??= reason
    this.#tell('server/quarantined', reason)
    this.#halted = this.#stopAllFor(reason)
    return this.#halted
  }

  /** The operator's word that it may run again, once nothing of it runs any more; false when it was not quarantined, or is anew. */
  async release(reason: string): Promise<boolean> {
    const halted = this.#halted
    // A call that came before would find what is being stopped.
    await halted.catch(() => undefined)
    if (this.#quarantined === null || this.#halted !== halted) return false
    this.#quarantined = null
    this.#storm.clear()
    for (const { instance } of this.#slots.values()) {
      if (instance.state === 'quarantined') instance.mark('release', reason)
    }
    this.#tell('server/released', reason)
    return true
  }

  /** Ends what lasts of its sessions where policy does not let it go on. */
  readonly review = (): void => this.#sessions.forEach((session) => session.review())

  view(caller: Caller): ServerView {
    const { name, version, trust, profile, scope, enabled } = this.settings
    const instances = this.#instances(caller)
    const tried = [...this.#attempts].filter(([principal]) => sees(caller, principal))
    const down = tried.map(([, attempts]) => attempts.down).find((one) => one !== null) ?? null
    const { settings, haltedFor } = this
    const { state, reason } = serverState({ settings, haltedFor, instances, down })
    const pool = this.#ports.pools.view(name)
    return { name, state, version, trust, profile, scope, enabled, instances, pool, reason }
  }

  detail(caller: Caller): ServerDetail {
    const said = this.#slots.get(caller.principal.id)?.tools?.instructions ?? null
    const isAccepted = said !== null && this.#ports.governor.introduces(this.settings, null, said)
    return {
      ...this.view(caller),
      ...this.#ports.describe(this.settings),
      ...entryView(this.settings),
      instructions: isAccepted ? harmless(said, maxInstructions) : null,
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stopAll('Sallyport is stopping')
  }

  /** `told` is what whoever waits for it hears. */
  async #stopAll(reason: string, told = reason): Promise<void> {
    const everything = [...this.#slots.values(), ...this.#sessions]
    const apart = this.apart.halt(told)
    await settleAll([this.#drain(reason), ...everything.map((one) => one.stop(told)), ...apart])
  }

  #stopAllFor(quarantine: string): Promise<void> {
    const told = quarantined(this.settings.name, quarantine)
    this.#slots.forEach((slot) => slot.cut(told)) // what a server says that broke a rule is nobody's answer
    return this.#stopAll(quarantine, told).finally(() => {
      // Also where one could not be stopped; none where this was released, which an earlier one is meanwhile.
      for (const { instance } of this.#quarantined === null ? [] : this.#slots.values())
        if (instance.state === 'stopped' || instance.state === 'failed') instance.mark('quarantine', told)
    })
  }

  #tell(type: string, reason: string): void {
    const { name } = this.settings
    this.#ports.emit({ type, server: name, instance: null, principal: null, detail: { reason } })
  }

  #drain(reason: string): Promise<void> {
    return this.#ports.pools.drain(this.settings.name, reason)
  }

  #instances(caller: Caller): readonly InstanceView[] {
    const sessions = [...this.#sessions].filter(({ principal }) => sees(caller, principal))
    return [
      ...this.slots(caller).flatMap((slot) => slot.views()),
      ...sessions.flatMap((session) => session.views()),
    ]
  }

  #attemptsOf(principal: string): Attempts {
    return kept(this.#attempts, principal, () => new Attempts(this.settings, this.#ports.random))
  }

  /** Counts an end that nobody asked for, and that is the server's own; true when the server is now quarantined. */
  #lost({ reason, isNoTry = false, needsAuth = false }: Lost): boolean {
    if (this.#quarantined !== null) return true
    if (isNoTry || needsAuth || !this.#storm.ended(performance.now())) return false
    const { storm, steadyS } = this.settings.restart
    this.#ports.stormed(
      this.settings.name,
      `it was lost ${storm} times within ${steadyS} s, the last time because ${reason}`,
    )
    return this.#quarantined !== null
  }
}

/** What is kept of a principal; made when first asked for. */
function kept<T>(all: Map<string, T>, principal: string, make: () => T): T {
  const found = all.get(principal) ?? make()
  all.set(principal, found)
  return found
}

/** A host sees what is its own, the operator everything. */
export const sees = ({ role, principal }: Caller, owner: string): boolean =>
  role === 'operator' || principal.id === owner
