// The tools that one server shows to one principal's control calls, with the generation in which each became what it is.
import { SallyportError } from '../errors.ts'
import type { McpClient, RequestOptions } from './mcp-client.ts'

/** One tool as the server describes it. */
export interface ListedTool {
  readonly tool: string
  readonly description: string
  readonly inputSchema: unknown
  readonly annotations: unknown
  /** Generation in which the description last changed */
  readonly since: number
}

interface Page {
  readonly tools?: unknown
  readonly nextCursor?: unknown
}

/** Pages of one list beyond which a server is not listing but talking */
const maxPages = 100
/** Least time between two fetches after `list_changed`, ms */
const refetchMs = 5000

/** Holds the list; `next` gives a new generation, which is the daemon's, not the server's. */
export class ToolSurface {
  readonly #client: McpClient
  readonly #limit: number
  readonly #next: () => number
  #tools: ReadonlyMap<string, ListedTool & { readonly text: string }> = new Map()
  #fetchedAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(client: McpClient, limit: number, next: () => number) {
    this.#client = client
    this.#limit = limit
    this.#next = next
  }

  get tools(): readonly ListedTool[] {
    return [...this.#tools.values()]
  }

  find(tool: string): ListedTool | null {
    return this.#tools.get(tool) ?? null
  }

  /** Asks the server for all its tools, at most `limit`; returns true when something is not what it was. */
  async fetch(options: RequestOptions): Promise<boolean> {
    this.#fetchedAt = performance.now()
    const found = this.#client.hasTools ? await this.#pages(options) : []
    const texts = new Map(found.map((tool) => [tool.tool, tool]))
    const isSame =
      texts.size === this.#tools.size &&
      [...texts].every(([name, { text }]) => this.#tools.get(name)?.text === text)
    if (isSame) return false
    const generation = this.#next()
    this.#tools = new Map(
      [...texts].map(([name, tool]) => {
        const before = this.#tools.get(name)
        return [name, before?.text === tool.text ? before : { ...tool, since: generation }]
      }),
    )
    return true
  }

  /** Fetches again, soon enough and not too often; `fetched` is told. */
  changed(
    options: RequestOptions,
    fetched: (outcome: { changed: boolean } | { error: SallyportError }) => void,
  ): void {
    if (this.#timer !== undefined) return
    const waitMs = Math.max(0, this.#fetchedAt + refetchMs - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.fetch(options).then(
        (changed) => fetched({ changed }),
        (thrown: unknown) => fetched({ error: SallyportError.from(thrown) }),
      )
    }, waitMs)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#tools = new Map()
  }

  async #pages(options: RequestOptions): Promise<readonly (ListedTool & { text: string })[]> {
    const tools: (ListedTool & { text: string })[] = []
    let cursor: string | null = null
    for (let page = 0; page < maxPages && tools.length < this.#limit; page++) {
      const params = cursor === null ? '{}' : JSON.stringify({ cursor })
      const answer = await this.#client.request('tools/list', params, options)
      if (answer.kind === 'error') {
        throw new SallyportError(
          'ERR_SERVER_UNAVAILABLE',
          `tools/list failed: ${answer.message} (${answer.code})`,
        )
      }
      const { tools: listed, nextCursor } = (JSON.parse(answer.result.raw) ?? {}) as Page
      if (!Array.isArray(listed))
        throw new SallyportError('ERR_SERVER_PROTOCOL', 'tools/list gave no list of tools')
      for (const one of listed) {
        const tool = readTool(one)
        if (tool !== null && tools.length < this.#limit) tools.push(tool)
      }
      if (typeof nextCursor !== 'string' || nextCursor === cursor) break
      cursor = nextCursor
    }
    return tools
  }
}

function readTool(value: unknown): (ListedTool & { text: string }) | null {
  if (typeof value !== 'object' || value === null) return null
  const { name, description, inputSchema, annotations } = value as Record<string, unknown>
  if (typeof name !== 'string') return null
  return {
    tool: name,
    description: typeof description === 'string' ? description : '',
    inputSchema: inputSchema ?? null,
    annotations: annotations ?? null,
    since: 0,
    text: JSON.stringify(value),
  }
}
