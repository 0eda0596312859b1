// What servers list, held against what was accepted: first sight, acceptance, and every change since.
import { canonicalize, digestOf } from '../call/canonical.ts'
import {
  type AcceptedSurface,
  type AcceptedTool,
  compareSurface,
  draftDeclaration,
  type SurfaceChange,
  surfaceDigest,
  type ToolDeclaration,
} from '../call/declaration.ts'
import type { Fact } from '../call/facts.ts'
import { isSameServer, type Ledger } from '../call/ledger.ts'
import { SallyportError } from '../errors.ts'
import type { InstanceId } from '../lib/ids.ts'
import type { Observation } from '../schema/governor.ts'
import type { DeclaredTool, ServerSettings } from '../schema/settings.ts'
import type { Emit } from '../supervisor/ports.ts'

/** A tool object beyond this many characters is no tool that anybody could have looked at */
const maxToolLength = 262_144
const everythingElse = '*'

export interface SurfacePorts {
  readonly ledger: Ledger
  /** Makes a fact durable, then true */
  readonly add: (fact: Fact) => Promise<void>
  readonly emit: Emit
  /** Digest over what runs as this server: program, package, arguments */
  readonly codeOf: (server: ServerSettings) => string
  readonly violate: (server: string, tool: string, failure: string, detail: string) => Promise<void>
  readonly quarantine: (server: string, failure: string, reason: string) => Promise<void>
}

/** A surface in the form in which it is compared and accepted. */
interface Seen {
  readonly server: ServerSettings
  readonly codeDigest: string
  readonly tools: ReadonlyMap<string, AcceptedTool>
  readonly digests: Map<string, string>
  readonly restDigest: string
}

const toolName = /^[A-Za-z0-9_.-]{1,128}$/

/** One observation or acceptance of a server at a time, so that two instances can't both be the first. */
export class Surfaces {
  readonly #ports: SurfacePorts
  readonly #turns = new Map<string, Promise<void>>()

  constructor(ports: SurfacePorts) {
    this.#ports = ports
  }

  /** Notes what an instance lists; what is new since the acceptance is recorded before this resolves. */
  observe(seen: Observation): Promise<void> {
    return this.#inTurn(seen.server.name, () =>
      this.#observe(read(seen, this.#ports.codeOf(seen.server)), seen.instance),
    )
  }

  /**
   * Accepts what a server lists, as it was just seen. Resolves with what is accepted from now on.
   *
   * @throws ERR_DECLARATION_MISMATCH where a declaration speaks of what the server does not list, or lists otherwise
   */
  accept(seen: Omit<Observation, 'instance'>, acceptance: Acceptance): Promise<AcceptedSurface> {
    const { server } = seen
    return this.#inTurn(server.name, async () => {
      const { declared, only, by } = acceptance
      const live = read({ ...seen, server: { ...server, declaration: declared } }, this.#ports.codeOf(server))
      if (declared !== null) expectListed(server.name, declared, seen.tools)
      const chosen = choose(live, only, this.#ports.ledger.accepted(server.name))
      await this.#accept({ ...live, tools: chosen }, by)
      const accepted = this.#ports.ledger.accepted(server.name)
      if (accepted === null)
        throw new SallyportError('ERR_INTERNAL', `${server.name} was accepted and is not`)
      return accepted
    })
  }

  /** An instance listed a tool to its host that is not what it listed to us. */
  deviates(server: string, instance: InstanceId, tool: string, digest: string): void {
    this.#ports.ledger.live(instance)?.digests.set(tool, digest)
    // Whatever comes of the record, the tool stands changed; the journal's own events tell of a failure.
    void this.#inTurn(server, () => this.#tell(server, [tool], new Map([[tool, digest]]))).catch(
      () => undefined,
    )
  }

  async #observe(seen: Seen, instance: InstanceId): Promise<void> {
    const { ledger, emit } = this.#ports
    const { server, digests, codeDigest } = seen
    const isFirst = ledger.accepted(server.name) === null
    if (isFirst && server.acceptance === 'first-use') await this.#accept(seen, 'first-use')
    const accepted = ledger.accepted(server.name)
    const identity = { serverVersion: server.version, codeDigest }
    let change: SurfaceChange = {
      undeclared: [...digests.keys()],
      changed: [],
      missing: [],
      isRestChanged: true,
    }
    if (accepted === null || !isSameServer(accepted, identity)) {
      const reason = accepted === null ? 'nothing was accepted yet' : 'it is another version, or other code'
      emit(about('surface/unaccepted', server.name, { reason, mend: `sallyport accept ${server.name}` }))
    } else {
      change = compareSurface(accepted, digests, seen.restDigest)
      if (await this.#judge(seen, change)) change = { ...change, undeclared: [] }
    }
    ledger.observe(instance, { ...identity, change, digests, restDigest: seen.restDigest })
  }

  /** True when what was undeclared is accepted now. */
  async #judge(seen: Seen, change: SurfaceChange): Promise<boolean> {
    const { server, digests, restDigest } = seen
    const { undeclared, changed, isRestChanged } = change
    await this.#tell(server.name, changed, digests)
    if (isRestChanged)
      await this.#tell(server.name, [everythingElse], new Map([[everythingElse, restDigest]]))
    if (undeclared.length === 0) return false
    if (server.surface === 'static') {
      const what = `it lists ${undeclared.slice(0, 5).join(', ')}, which nobody declared, and its surface is static: a server that lists by client or changes as it runs needs surface: dynamic`
      await this.#ports.quarantine(server.name, 'MP-FH-005', what)
      return false
    }
    if (server.acceptance !== 'first-use') {
      this.#ports.emit(about('surface/unaccepted', server.name, { tools: undeclared }))
      return false
    }
    await this.#accept(seen, 'first-use', change)
    return true
  }

  /** Records changes that were not told before, each a violation of the tool's trust. */
  async #tell(server: string, names: readonly string[], digests: ReadonlyMap<string, string>): Promise<void> {
    const { ledger, add, violate, emit } = this.#ports
    const fresh = names.filter((name) => !ledger.isTold(server, name, digests.get(name) ?? ''))
    if (fresh.length === 0) return
    const became = Object.fromEntries(fresh.map((name) => [name, digests.get(name) ?? '']))
    await add({ type: 'surface.changed', body: { server, became } })
    emit(about('surface/changed', server, { tools: fresh, failure: 'MP-FH-003' }))
    for (const tool of fresh)
      if (tool !== everythingElse)
        await violate(server, tool, 'MP-FH-003', 'it is listed otherwise than when it was accepted')
  }

  /** With a change, only what is undeclared becomes accepted; what was accepted before stays as it was. */
  async #accept(seen: Seen, by: string, change: SurfaceChange | null = null): Promise<void> {
    const { ledger, add, emit } = this.#ports
    const { server, codeDigest } = seen
    const before = ledger.accepted(server.name)
    const kept = change === null ? [] : [...(before?.tools.values() ?? [])]
    const fresh = [...seen.tools].filter(([name]) => change?.undeclared.includes(name) ?? true)
    const named = new Set([
      ...kept.map(({ declaration }) => declaration.name),
      ...fresh.map(([name]) => name),
    ])
    await add({
      type: 'surface.accepted',
      body: {
        server: server.name,
        serverVersion: server.version,
        codeDigest,
        declarationVersion: ledger.nextVersion(server.name),
        tools: [...kept, ...fresh.map(([, tool]) => tool)],
        restDigest: change === null ? seen.restDigest : (before?.restDigest ?? seen.restDigest),
        leftOut: by === 'first-use' ? [] : [...seen.digests.keys()].filter((name) => !named.has(name)),
        acceptedBy: by,
      },
    })
    emit(about('surface/accepted', server.name, { by, tools: fresh.map(([name]) => name) }))
  }

  #inTurn<T>(server: string, work: () => Promise<T>): Promise<T> {
    const done = (this.#turns.get(server) ?? Promise.resolve()).then(work)
    this.#turns.set(
      server,
      done.then(
        () => undefined,
        () => undefined,
      ),
    )
    return done
  }
}

/** What is to be accepted of a surface, and in whose words. */
export interface Acceptance {
  /** The operator's uid */
  readonly by: string
  /** The operator's declaration, or null to take the draft of what is listed */
  readonly declared: ServerSettings['declaration']
  /** Only these tools beside those that are accepted already, or null for all that is declared */
  readonly only: readonly string[] | null
}

function choose(
  { server, codeDigest, tools }: Seen,
  only: readonly string[] | null,
  before: AcceptedSurface | null,
): ReadonlyMap<string, AcceptedTool> {
  if (only === null) return tools
  const unknown = only.find((name) => !tools.has(name))
  if (unknown !== undefined)
    throw new SallyportError(
      'ERR_TOOL_NOT_FOUND',
      `${server.name} lists no tool ${unknown} that could be accepted; see sallyport declare ${server.name}`,
      { server: server.name, tool: unknown },
    )
  const isSame = before !== null && isSameServer(before, { serverVersion: server.version, codeDigest })
  const kept = isSame
    ? [...before.tools].filter(([name, tool]) => tools.get(name)?.surfaceDigest === tool.surfaceDigest)
    : []
  const chosen = [...tools].filter(([name]) => only.includes(name))
  return new Map([...kept, ...chosen])
}

/** Nothing is accepted in words that are not about what is there. */
function expectListed(
  server: string,
  declared: NonNullable<ServerSettings['declaration']>,
  listed: ReadonlyMap<string, unknown>,
): void {
  for (const tool of Object.values(declared)) {
    const why = mismatch(tool, listed.get(tool.name))
    if (why !== null)
      throw new SallyportError(
        'ERR_DECLARATION_MISMATCH',
        `the declaration of ${server}/${tool.name} is not about what ${server} lists: ${why}; draft it anew with sallyport declare ${server}`,
        { server, tool: tool.name },
      )
  }
}

function mismatch(declared: DeclaredTool, listed: unknown): string | null {
  if (listed === undefined) return 'it lists no tool of that name'
  const digest = digestOfTool(listed)
  if (digest === null) return 'what it lists cannot be read in one way'
  if (declared.surfaceDigest !== null && declared.surfaceDigest !== digest)
    return `its digest is ${digest.slice(0, 12)}…, declared was ${declared.surfaceDigest.slice(0, 12)}…`
  const draft = draftDeclaration({ ...(listed as object), name: declared.name })
  const isSame = (a: unknown, b: unknown): boolean => canonicalize(a) === canonicalize(b)
  if (!isSame(declared.parameters, draft.parameters)) return 'its parameters are other ones'
  return isSame(declared.output, draft.output) ? null : 'its output is another one'
}

function read({ server, tools, rest }: Omit<Observation, 'instance'>, codeDigest: string): Seen {
  const readable = [...tools].flatMap(([name, tool]): [string, AcceptedTool][] => {
    const digest = toolName.test(name) ? digestOfTool(tool) : null
    const declaration = digest === null ? null : proposal(server, name, tool)
    if (digest === null || declaration === null) return []
    return [[name, { declaration, surfaceDigest: digest }]]
  })
  return {
    server,
    codeDigest,
    tools: new Map(readable),
    digests: new Map(
      [...tools].flatMap(([name, tool]): [string, string][] => {
        const digest = toolName.test(name) ? digestOfTool(tool) : null
        return digest === null ? [] : [[name, digest]]
      }),
    ),
    restDigest: digestOf(canonicalize(rest)),
  }
}

/** What a tool would be accepted as: the operator's words where there are any for just this, else the draft. */
function proposal({ declaration }: ServerSettings, name: string, listed: unknown): ToolDeclaration | null {
  if (declaration === null) return draftDeclaration({ ...(listed as object), name })
  const declared = declaration[name]
  if (declared === undefined || mismatch(declared, listed) !== null) return null
  const { surfaceDigest: _, ...words } = declared
  return words
}

/** Null for an object that is too long, or that two readers could read differently: it is no tool. */
export function digestOfTool(tool: unknown): string | null {
  try {
    return JSON.stringify(tool).length > maxToolLength ? null : surfaceDigest(tool)
  } catch {
    return null
  }
}

const about = (type: string, server: string, detail: Readonly<Record<string, unknown>>) => ({
  type,
  server,
  instance: null,
  principal: null,
  detail,
})
