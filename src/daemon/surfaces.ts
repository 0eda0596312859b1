// What servers list, held against what was accepted: first sight, acceptance, and every change since.
import { canonicalize, digestOf } from '../call/canonical.ts'
import {
  type AcceptedTool,
  compareSurface,
  draftDeclaration,
  type SurfaceChange,
  surfaceDigest,
} from '../call/declaration.ts'
import { type Fact, isSameServer, type Ledger } from '../call/ledger.ts'
import { SallyportError } from '../errors.ts'
import type { InstanceId } from '../lib/ids.ts'
import type { Observation } from '../schema/governor.ts'
import type { ServerSettings } from '../schema/settings.ts'
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
  readonly #last = new Map<string, Seen>()
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

  /** Accepts the surface that a server was last seen with. */
  accept(server: string, by: string): Promise<void> {
    return this.#inTurn(server, async () => {
      const seen = this.#last.get(server)
      if (seen !== undefined) return this.#accept(seen, by)
      const mend = `sallyport test ${server} starts it once`
      throw new SallyportError(
        'ERR_DECLARATION_MISSING',
        `${server} was not seen in this life of the daemon, so there is nothing to accept; ${mend}`,
        { server },
      )
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
    this.#last.set(server.name, seen)
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
    ledger.observe(instance, { ...identity, change, digests })
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
      const what = `it lists ${undeclared.slice(0, 5).join(', ')}, which nobody declared, and its surface is static`
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
    await add({
      type: 'surface.accepted',
      body: {
        server: server.name,
        serverVersion: server.version,
        codeDigest,
        declarationVersion: (before?.declarationVersion ?? 0) + 1,
        tools: [...kept, ...fresh.map(([, tool]) => tool)],
        restDigest: change === null ? seen.restDigest : (before?.restDigest ?? seen.restDigest),
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

function read({ server, tools, rest }: Observation, codeDigest: string): Seen {
  const readable = [...tools].flatMap(([name, tool]): [string, AcceptedTool][] => {
    const digest = toolName.test(name) ? digestOfTool(tool) : null
    if (digest === null) return []
    return [[name, { declaration: draftDeclaration({ ...(tool as object), name }), surfaceDigest: digest }]]
  })
  return {
    server,
    codeDigest,
    tools: new Map(readable),
    digests: new Map(readable.map(([name, tool]) => [name, tool.surfaceDigest])),
    restDigest: digestOf(canonicalize(rest)),
  }
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
