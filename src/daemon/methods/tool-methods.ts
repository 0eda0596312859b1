// How callers find tools: a short list, one tool in full, and a search where there are too many to list.
import { search } from '../../call/search.ts'
import type { ToolDeclaration } from '../../call/declaration.ts'
import { SallyportError } from '../../errors.ts'
import type { CallResult } from '../../rpc/protocol.ts'
import type { ToolDetail, ToolView } from '../../rpc/governed.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'
import type { Declaration } from '../../schema/types.gen.ts'
import { newCallId } from '../../lib/ids.ts'
import { validateParams } from '../../schema/params.ts'
import { formatPath } from '../../schema/problem.ts'
import { displayName, schemaView, viewTools } from '../../supervisor/control/tool-view.ts'
import type { Policy } from '../../supervisor/ports.ts'
import type { Supervisor } from '../../supervisor/supervisor.ts'
import { foreseen, type ForeseenPorts } from './foreseen.ts'
import type { MethodCall, MethodTable } from './methods.ts'

type Methods = 'tools/list' | 'tools/describe' | 'tools/search'

export interface ToolPorts extends ForeseenPorts {
  readonly supervisor: Supervisor
  readonly policy: Pick<Policy, 'settings' | 'gate' | 'governor'>
}

/** The server and tool under which the search itself is listed, and can be called. */
export const searchTool = { server: 'sallyport', tool: 'search' } as const

/** Tools that stay listed because a caller's searches found them, those that were found longest ago going first */
const mostFound = 100

/** The methods of both sockets about tools, and the search as a tool. */
export class ToolMethods {
  readonly #ports: ToolPorts
  /** Principal -> displayed names that its searches have found, the last ones last */
  readonly #found = new Map<string, Set<string>>()

  constructor(ports: ToolPorts) {
    this.#ports = ports
  }

  table(): MethodTable<Methods> {
    return {
      'tools/list': ({ server = null, all = false }, call) => this.#list(server, all, call),
      'tools/describe': ({ server, tool }, call) => this.#describe(server, tool, call),
      'tools/search': (params, call) => this.#search(params, call),
    }
  }

  /** Calls the search as the tool that the list shows. */
  async call(query: unknown, call: MethodCall): Promise<CallResult> {
    const began = performance.now()
    const { tools } = await this.#search({ query: wordsOf(query) }, call)
    const text = tools.map(({ name, description }) => `${name}: ${description}`).join('\n')
    const metadata = {
      duration_ms: Math.round((performance.now() - began) * 1000) / 1000,
      truncated: false,
      output_path: null,
      identity: `${searchTool.server}/${searchTool.tool}`,
      permit: null,
    }
    const data = { content: [{ type: 'text', text }], structuredContent: { tools } }
    return { call_id: newCallId(), type: 'output', data, error_text: null, metadata }
  }

  /** Above the threshold the search and what it found stand for all, unless one server or everything is asked for. */
  async #list(server: string | null, all: boolean, { caller, signal }: MethodCall) {
    const { supervisor, policy } = this.#ports
    const { searchThreshold, naming } = policy.settings.tools
    const { tools, generation, collisions } = await supervisor.tools(caller, server, { signal })
    if (all || server !== null || tools.length <= searchThreshold)
      return { tools, generation, collisions, deferred: 0 }
    const found = this.#found.get(caller.principal.id) ?? new Set()
    const known = tools.filter(({ name }) => found.has(name))
    return {
      tools: [searchView(tools.length, naming), ...known],
      generation,
      collisions,
      deferred: tools.length - known.length,
    }
  }

  async #search(
    { query, server = null, limit }: { query: string; server?: string | null; limit?: number },
    { caller, signal }: MethodCall,
  ) {
    const { supervisor, policy } = this.#ports
    const { searchMatches } = policy.settings.tools
    const { tools, generation } = await supervisor.tools(caller, server, { signal, length: 'full' })
    const entries = tools.map((view) => ({ ...view, inputSchema: view.input_schema, view }))
    const most = Math.min(limit ?? searchMatches, searchMatches)
    const matches = (await search(entries, query, most)).map(({ view }) => view)
    this.#remember(
      caller.principal.id,
      matches.map(({ name }) => name),
    )
    return { tools: matches, generation, searched: tools.length }
  }

  #remember(principal: string, names: readonly string[]): void {
    const found = [...(this.#found.get(principal) ?? [])].filter((name) => !names.includes(name))
    this.#found.set(principal, new Set([...found, ...names].slice(-mostFound)))
  }

  async #describe(server: string, tool: string, { caller, signal }: MethodCall): Promise<ToolDetail> {
    const { supervisor, governance } = this.#ports
    const { ledger } = governance
    const settings = supervisor.settingsOf(caller, server)
    const { tools } = await supervisor.tools(caller, server, { signal, length: 'full' })
    const own = supervisor.own(caller, server)?.view()
    const standing = foreseen(this.#ports, settings, own, { kind: 'tool', subject: tool })
    const accepted = ledger.accepted(server)?.tools.get(tool)?.declaration ?? null
    const view =
      tools.find((one) => one.tool === tool) ??
      (accepted === null ? undefined : this.#acceptedView(settings, accepted))
    if (view === undefined)
      throw new SallyportError(
        'ERR_TOOL_NOT_FOUND',
        `${server} shows no tool ${tool}: it is not connected, or has none of that name; see sallyport tools ${server}`,
        { server, tool },
      )
    return {
      ...view,
      output_schema: schemaView(accepted?.output ?? null),
      identity: standing.state === 'accepted' ? standing.identity : null,
      declaration: accepted === null ? null : shownDeclaration(accepted),
      tier: ledger.trust(server, tool).tier,
      halted: standing.state === 'accepted' ? ledger.hold(server, tool, null) : standing.reason,
    }
  }

  /** What is known of an accepted tool that its server does not list now; undefined where policy hides it. */
  #acceptedView(server: ServerSettings, { name, parameters }: ToolDeclaration): ToolView | undefined {
    const known = { tool: name, description: '', inputSchema: parameters, annotations: null }
    const [view] = viewTools(server, [known], this.#ports.policy, 'full')
    return view
  }
}

/** What is searched for, within the bounds of the method. */
function wordsOf(query: unknown): string {
  const asked = validateParams('tools/search', { query })
  if (asked.ok) return asked.value.query
  const wrong = asked.problems.map(
    ({ at, got, expected }) => `${formatPath(['arguments', ...at])}: got ${got}, expected ${expected}`,
  )
  throw new SallyportError('ERR_ARGUMENTS_INVALID', wrong.join('; '))
}

/** A declaration in the words of its file. */
export const declarationView = (declaration: ToolDeclaration): Declaration['tools'][string] => ({
  version: declaration.version,
  parameters: { ...(declaration.parameters as object) },
  side_effects: [...declaration.sideEffects],
  resource_scopes: [...declaration.resourceScopes],
  credentials: [...declaration.credentials],
  output: declaration.output === null ? null : { ...(declaration.output as object) },
  idempotency: declaration.idempotency,
  failure_modes: [...declaration.failureModes],
})

/** The same for hosts: its schemas are the server's words. */
const shownDeclaration = (declaration: ToolDeclaration): Declaration['tools'][string] =>
  declarationView({
    ...declaration,
    parameters: schemaView(declaration.parameters),
    output: schemaView(declaration.output),
  })

const searchView = (count: number, naming: Settings['tools']['naming']): ToolView => ({
  name: displayName(searchTool.server, searchTool.tool, naming),
  ...searchTool,
  description: `Finds tools among ${count} by what they are for; what it finds is listed from then on.`,
  decision: 'allow',
  input_schema: {
    type: 'object',
    properties: { query: { type: 'string', description: 'A few words about the purpose' } },
    required: ['query'],
    additionalProperties: false,
  },
  read_only: true,
  destructive: false,
  annotations: { readOnlyHint: true, openWorldHint: false },
})
