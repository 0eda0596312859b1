// What servers list, held against what was accepted: first sight, acceptance, and every change since.
import {
  compareSurface,
  type AcceptedSurface,
  type SideEffect,
  type SurfaceChange,
} from '../../call/declaration.ts'
import type { Fact } from '../../call/facts.ts'
import type { Ledger } from '../../call/ledger.ts'
import { isSameServer } from '../../call/live.ts'
import { missingGrant } from '../../config/containment.ts'
import { SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { Observation } from '../../schema/governor.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Emit } from '../../supervisor/ports.ts'
import type { Consequences } from './consequences.ts'
import { Introductions } from './introductions.ts'
import { rememberedOf, unaccepted, unreadNews } from './left-out.ts'
import { acceptance, beyondWords, event, mendOf, passedOverWords, undeclaredWords } from './failure-events.ts'
import { expectVersion, isOf, otherWords, whyNone } from './said-version.ts'
import {
  type Acceptance,
  choose,
  expectContained,
  expectListed,
  type Reading,
  readSurface,
  restOf,
  type Seen,
  unreadableDigest,
} from './seen.ts'
import { turnsByName } from '../turns.ts'

const everythingElse = '*'

export interface SurfacePorts extends Reading {
  readonly ledger: Ledger
  /** Makes a fact durable, then true */
  readonly add: (fact: Fact, evidence?: Readonly<Record<string, unknown>>) => Promise<void>
  readonly emit: Emit
  readonly stands: (server: string) => boolean
  /** A server has this declaration version from now on, and no other */
  readonly accepted: (server: string, declarationVersion: number) => void
  /** What runs as a server is another version, or other code, than what was accepted */
  readonly replaced: (server: string) => void
  /** An instance has something of what is no tool otherwise than it was accepted, or is another server */
  readonly differs: () => void
  /** Most tools of a server that are accepted on the operator's standing word, over all that it ever lists */
  readonly toolLimit: () => number
  readonly consequences: Pick<Consequences, 'violate' | 'elseChanged' | 'quarantine'>
}

/** One observation or acceptance of a server at a time, so that two instances can't both be the first. */
export class Surfaces {
  readonly #ports: SurfacePorts
  readonly #inTurn = turnsByName()
  /** Tool -> what it was blamed for being, until that it is so is on record: each look finds it again */
  readonly #blamed = new Map<string, string>()

  readonly introductions: Introductions

  constructor(ports: SurfacePorts) {
    this.#ports = ports
    this.introductions = new Introductions(ports)
  }

  /** Notes what an instance lists; what is new since the acceptance is recorded before this resolves. */
  observe(seen: Observation): Promise<void> {
    const { name } = seen.server
    return this.#inTurn(name, () => {
      const read = readSurface(seen, this.#ports, this.#ports.ledger.accepted(name))
      return this.#observe(read, seen.instance, seen.tools.size)
    })
  }

  /**
   * Accepts what a server lists, as it was just seen. Resolves with what is accepted from now on.
   *
   * @throws ERR_DECLARATION_MISMATCH where a declaration speaks of what the server does not list, or lists otherwise
   */
  accept(seen: Omit<Observation, 'instance'>, acceptance: Acceptance): Promise<AcceptedSurface> {
    const { server } = seen
    return this.#inTurn(server.name, async () => {
      const { declared, declaredVersion, only, by, peer } = acceptance
      const before = this.#ports.ledger.accepted(server.name)
      const live = readSurface({ ...seen, server: { ...server, declaration: declared } }, this.#ports, before)
      if (declared !== null) expectListed(server.name, declared, seen.tools)
      expectVersion(server.name, declaredVersion, seen.saidVersion)
      expectContained(server, this.#ports.profileOf(server), live.tools)
      const chosen = choose(live, only, before)
      await this.#accept({ ...live, tools: chosen }, restOf(live), by, null, { peer })
      const accepted = this.#ports.ledger.accepted(server.name)
      if (accepted === null)
        throw new SallyportError('ERR_INTERNAL', `${server.name} was accepted and is not`)
      return accepted
    })
  }

  /** Does what ends the acceptances of these servers behind all that is under way of any. One such work for several at a time. */
  end([server, ...others]: readonly string[], work: () => Promise<void>): Promise<void> {
    return server === undefined ? work() : this.#inTurn(server, () => this.end(others, work))
  }

  /** Which classes of side effects can happen in the server's sandbox. */
  isPossible(server: ServerSettings): (effect: SideEffect) => boolean {
    const profile = this.#ports.profileOf(server)
    return (effect) => missingGrant(effect, server, profile) === null
  }

  /** An instance listed a tool to its host that is not what it listed to us. */
  deviates(server: string, instance: InstanceId, tool: string, digest: string): void {
    this.#ports.ledger.live(instance)?.digests.set(tool, digest)
    // Whatever comes of the record, the tool stands changed; the journal's own events tell of a failure.
    void this.#inTurn(server, () => this.#tell(server, [tool], new Map([[tool, digest]]))).catch(
      () => undefined,
    )
  }

  /** An instance listed a tool to its host that it did not list to us, and nobody declared; a dynamic surface may come to it yet. */
  strays({ name, surface }: ServerSettings, instance: InstanceId, tool: string): void {
    const { ledger, consequences } = this.#ports
    const isDeclared = ledger.accepted(name)?.tools.has(tool) ?? true
    if (surface === 'dynamic' || isDeclared || ledger.live(instance)?.isWhole !== true) return
    const halt = (): Promise<void> => consequences.quarantine(name, 'MP-FH-005', undeclaredWords([tool]))
    const halted = this.#inTurn(name, async () => (ledger.quarantine(name) === null ? halt() : undefined))
    halted.catch(() => undefined)
  }

  async #observe(seen: Seen, instance: InstanceId, listed: number): Promise<void> {
    const { ledger, emit } = this.#ports
    const { server, digests, codeDigest, saidVersion, rest } = seen
    const isFull = listed >= this.#ports.toolLimit()
    const isFirst = ledger.accepted(server.name) === null
    const identity = { serverVersion: server.version, codeDigest, saidVersion }
    const isLiar = rest !== null && this.introductions.isTwofold(instance, rest)
    const isAnother = !isOf(server.declaredVersion, saidVersion)
    if (isFirst && rest !== null && server.acceptance === 'first-use' && !isLiar && !isAnother)
      await this.#accept(seen, rest, 'first-use')
    const accepted = ledger.accepted(server.name)
    let change: SurfaceChange = {
      undeclared: [...digests.keys()],
      changed: [],
      missing: [],
      isRestChanged: true,
    }
    if (accepted === null || !isSameServer(accepted, identity)) {
      this.#ports.replaced(server.name)
      const reason = accepted === null ? whyNone(isLiar, isAnother) : otherWords
      emit(event('surface/unaccepted', server.name, { reason, mend: mendOf(server.name) }))
    } else {
      for (const name of seen.unreadable.keys())
        if (accepted.tools.has(name)) digests.set(name, unreadableDigest)
      change = compareSurface(accepted, digests, rest?.restDigest ?? accepted.restDigest)
      const unread = isFirst ? [] : unreadNews(seen, accepted)
      change = { ...change, undeclared: await this.#judge(seen, accepted, change, unread) }
      // They may be listed further on, where nobody looks: they are not callable, and that is nobody's violation.
      if (isFull) this.#tellUnaccepted(server.name, change.missing, beyondWords(this.#ports.toolLimit()))
      if (isFirst) this.#tellUnaccepted(server.name, seen.passedOver, passedOverWords)
    }
    ledger.observe(instance, {
      ...identity,
      change,
      digests,
      unreadable: seen.unreadable,
      isFull,
      isWhole: !isFull && !seen.isCut,
      restDigest: rest?.restDigest ?? accepted?.restDigest ?? '',
    })
    if (change.isRestChanged) this.#ports.differs()
  }

  /** Resolves with what is still undeclared. */
  async #judge(
    seen: Seen,
    accepted: AcceptedSurface,
    change: SurfaceChange,
    unread: readonly string[],
  ): Promise<SurfaceChange['undeclared']> {
    const { server, digests, rest } = seen
    const { undeclared, changed, isRestChanged } = change
    await this.#tell(server.name, changed, digests)
    if (isRestChanged && rest !== null)
      await this.#tell(server.name, [everythingElse], new Map([[everythingElse, rest.restDigest]]))
    await this.#tellReturned(seen, accepted)
    if (server.surface === 'static') {
      const all = [...undeclared, ...unread]
      if (all.length > 0)
        await this.#ports.consequences.quarantine(server.name, 'MP-FH-005', undeclaredWords(all))
      return all
    }
    this.#tellUnaccepted(server.name, unread, passedOverWords)
    if (undeclared.length === 0) return undeclared
    if (server.acceptance !== 'first-use') {
      this.#ports.emit(event('surface/unaccepted', server.name, { tools: undeclared }))
      return undeclared
    }
    const isDeclared = isOf(server.declaredVersion, seen.saidVersion)
    const acceptable = undeclared.filter((name) => isDeclared && seen.tools.has(name))
    const room = Math.max(0, this.#ports.toolLimit() - accepted.tools.size)
    const [fresh, over] = [acceptable.slice(0, room), acceptable.slice(room)]
    const unlike = undeclared.filter((name) => !acceptable.includes(name))
    this.#tellUnaccepted(
      server.name,
      over,
      `with them it had more than tools.per_server (${this.#ports.toolLimit()})`,
    )
    this.#tellUnaccepted(server.name, unlike, 'its declaration does not have them, or has them otherwise')
    if (fresh.length > 0) await this.#accept(seen, accepted, 'first-use', { ...change, undeclared: fresh })
    return undeclared.filter((name) => !fresh.includes(name))
  }

  #tellUnaccepted(server: string, tools: readonly string[], reason: string): void {
    if (tools.length === 0) return
    this.#ports.emit(unaccepted(server, tools, reason))
  }

  /** Records changes that were not told before, each a violation of the tool's trust. */
  async #tell(server: string, names: readonly string[], digests: ReadonlyMap<string, string>): Promise<void> {
    const { ledger, add, consequences, emit } = this.#ports
    const fresh = names.filter((name) => ledger.told(server, name) !== (digests.get(name) ?? ''))
    if (fresh.length === 0) return
    const became = Object.fromEntries(fresh.map((name) => [name, digests.get(name) ?? '']))
    const isBlamed = (name: string): boolean => this.#blamed.get(`${server}/${name}`) === became[name]
    const tools = fresh.filter((name) => name !== everythingElse && !isBlamed(name))
    for (const name of tools) this.#blamed.set(`${server}/${name}`, became[name] ?? '')
    if (fresh.includes(everythingElse)) consequences.elseChanged(server)
    const why = 'it is listed otherwise than when it was accepted'
    // Trust goes first: of a daemon that is killed in between, the next one finds the change again.
    await Promise.all([
      tools.length === 0 ? null : consequences.violate(server, tools, 'MP-FH-003', why),
      add({ type: 'surface.changed', body: { server, became } }),
    ])
    for (const name of fresh) this.#blamed.delete(`${server}/${name}`)
    emit(event('surface/changed', server, { tools: fresh, failure: 'MP-FH-003' }))
  }

  /** Records what is again as it was accepted, so that the same change is told, and costs trust, whenever it comes. */
  async #tellReturned(
    { server: { name: server }, digests, rest }: Seen,
    accepted: AcceptedSurface,
  ): Promise<void> {
    const { ledger, add, emit } = this.#ports
    const tools = [...accepted.tools].map(([name, { surfaceDigest }]) => [name, surfaceDigest] as const)
    for (const [name, digest] of tools)
      if (digests.get(name) === digest) this.#blamed.delete(`${server}/${name}`)
    const back = [...tools, [everythingElse, accepted.restDigest] as const].filter(([name, digest]) => {
      const isListed = (name === everythingElse ? rest?.restDigest : digests.get(name)) === digest
      return isListed && (ledger.told(server, name) ?? digest) !== digest
    })
    if (back.length === 0) return
    await add({ type: 'surface.changed', body: { server, became: Object.fromEntries(back) } })
    emit(event('surface/returned', server, { tools: back.map(([name]) => name) }))
  }

  /** With a change, only what is undeclared becomes accepted; what was accepted before stays as it was. */
  async #accept(
    seen: Seen,
    rest: Rest,
    by: string,
    change: SurfaceChange | null = null,
    evidence: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    const { ledger, add, emit, stands, accepted } = this.#ports
    const { server, codeDigest, saidVersion } = seen
    if (!stands(server.name))
      throw new SallyportError('ERR_SERVER_NOT_FOUND', `${server.name} was removed before it was accepted`, {
        server: server.name,
      })
    const before = ledger.accepted(server.name)
    const declarationVersion = ledger.nextVersion(server.name)
    const kept = change === null ? [] : [...(before?.tools.values() ?? [])]
    const fresh = [...seen.tools].filter(([name]) => change?.undeclared.includes(name) ?? true)
    const tools = [...kept, ...fresh.map(([, tool]) => tool)]
    await add(
      {
        type: 'surface.accepted',
        body: {
          server: server.name,
          serverVersion: server.version,
          codeDigest,
          saidVersion: change === null ? saidVersion : (before?.saidVersion ?? saidVersion),
          declarationVersion,
          tools,
          restDigest: rest.restDigest,
          instructionsDigest: rest.instructionsDigest,
          ...rememberedOf(seen, tools, { by, before, isAddition: change !== null }),
          acceptedBy: by,
        },
      },
      evidence,
    )
    accepted(server.name, declarationVersion)
    emit(acceptance(server.name, by, new Map(fresh)))
  }
}

/** What of a surface is no tool, as it becomes accepted. */
type Rest = Pick<AcceptedSurface, 'restDigest' | 'instructionsDigest'>
