// The tools that one server shows to one principal's control calls, with the generation since which each is seen as it is.
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import { noList } from '../message/unavailable.ts'
import type { RequestOptions } from './options.ts'
import type { McpClient } from './mcp-client.ts'
import { untilQuiet } from './quiet.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { Compared, readSurface, type Surface } from './surface.ts'

/** One tool as the server describes it. */
export interface ListedTool {
  readonly tool: string
  readonly description: string
  readonly inputSchema: unknown
  readonly annotations: unknown
  /** Generation since which it is described so, and may be seen or not as now */
  readonly since: number
  /** The tool object as the server listed it */
  readonly listed: unknown
}

export interface ToolSurfaceOptions {
  readonly server: ServerSettings
  readonly client: McpClient
  /** Most tools of the server that are looked at */
  readonly limit: number
  /** Gives a new generation, which is the daemon's, not the server's */
  readonly next: () => number
  /** Compares what was listed with what was accepted, before anything of it is called */
  readonly observe: (surface: Surface) => Promise<void>
  /** Whether policy lets a tool be seen, as it stands now */
  readonly shows: (tool: ListedTool) => boolean
}

/** Least time between two fetches after `list_changed`, ms */
const refetchMs = 5000

const never = new AbortController().signal

/** Holds the list. */
export class ToolSurface {
  readonly #options: ToolSurfaceOptions
  #tools: ReadonlyMap<string, ListedTool & { readonly text: string }> = new Map()
  /** Those that policy let be seen when it was last asked */
  #shown: ReadonlySet<string> = new Set()
  /** Prompts and templates that were compared; null before the first time */
  compared: Compared | null = null
  #fetchedAt = 0
  #isStale = false
  #timer: NodeJS.Timeout | undefined
  #settling: Promise<void> | null = null
  /** The list that is on its way, or is compared: until then nobody knows it, whoever asked */
  #fetching: Promise<boolean> | null = null

  constructor(options: ToolSurfaceOptions) {
    this.#options = options
  }

  /** Null while it is known what the server lists; otherwise resolves when it is, and rejects when it can't be. */
  known(): Promise<void> | null {
    if (!this.#isStale && this.#fetching === null) return null
    const { server } = this.#options
    const { initializeMs: timeoutMs } = server.timeouts
    // One that is on its way may take longer than whoever waits for it.
    const ask = (): Promise<boolean> =>
      this.#fetching === null
        ? this.fetch({ timeoutMs, signal: never })
        : within(this.#fetching, timeoutMs, () => noList(server))
    const question = { server, ask, isStale: () => this.#isStale }
    this.#settling ??= untilQuiet(question).finally(() => (this.#settling = null))
    return this.#settling
  }

  /** How the server introduced itself, accepted or not. */
  get instructions(): string | null {
    return this.#options.client.introduction.instructions
  }

  get tools(): readonly ListedTool[] {
    return [...this.#tools.values()]
  }

  find(tool: string): ListedTool | null {
    return this.#tools.get(tool) ?? null
  }

  /** Asks the server for all its tools, at most `limit`; returns true when something is not what it was. */
  async fetch(options: RequestOptions): Promise<boolean> {
    const fetching = this.#fetch(options)
    this.#fetching = fetching
    try {
      return await fetching
    } finally {
      if (this.#fetching === fetching) this.#fetching = null
    }
  }

  async #fetch(options: RequestOptions): Promise<boolean> {
    this.#fetchedAt = performance.now()
    this.#isStale = false
    const { client, limit, observe } = this.#options
    const request = (method: string, params: string) => client.ask(method, params, options)
    try {
      const surface = await readSurface(request, client.introduction, limit)
      await observe(surface)
      this.compared = new Compared(surface)
      return this.#keep([...surface.tools].map(([name, tool]) => readTool(name, tool)))
    } catch (thrown) {
      this.#isStale = true
      throw thrown
    }
  }

  #keep(found: readonly (ListedTool & { text: string })[]): boolean {
    const texts = new Map(found.map((tool) => [tool.tool, tool]))
    const isSame =
      texts.size === this.#tools.size &&
      [...texts].every(([name, { text }]) => this.#tools.get(name)?.text === text)
    if (isSame) return false
    const generation = this.#options.next()
    this.#tools = new Map(
      [...texts].map(([name, tool]) => {
        const before = this.#tools.get(name)
        return [name, before?.text === tool.text ? before : { ...tool, since: generation }]
      }),
    )
    this.#shown = this.#showsNow()
    return true
  }

  /** Policy may let other tools be seen than before; returns true where it does, and those are of a new generation. */
  review(): boolean {
    const [before, now] = [this.#shown, this.#showsNow()]
    const others = new Set([...this.#tools.keys()].filter((name) => before.has(name) !== now.has(name)))
    if (others.size === 0) return false
    this.#shown = now
    const since = this.#options.next()
    this.#tools = new Map(
      [...this.#tools].map(([name, tool]) => [name, others.has(name) ? { ...tool, since } : tool]),
    )
    return true
  }

  #showsNow(): ReadonlySet<string> {
    const shown = [...this.#tools.values()].filter((tool) => this.#options.shows(tool))
    return new Set(shown.map(({ tool }) => tool))
  }

  /** Fetches again, soon enough and not too often; `fetched` is told. */
  changed(
    options: RequestOptions,
    fetched: (outcome: { changed: boolean } | { error: SallyportError }) => void,
  ): void {
    this.#isStale = true
    if (this.#timer !== undefined) return
    const waitMs = Math.max(0, this.#fetchedAt + refetchMs - performance.now())
    this.#timer = setTimeout(() => {
      this.#refetch(options).then(
        (changed) => fetched({ changed }),
        (thrown: unknown) => fetched({ error: SallyportError.from(thrown) }),
      )
    }, waitMs)
  }

  /** Not beside another: of two answers nobody could tell which is the newer one. */
  async #refetch(options: RequestOptions): Promise<boolean> {
    while (this.#fetching !== null) await this.#fetching.catch(() => undefined)
    this.#timer = undefined
    return this.fetch(options)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#tools = new Map()
  }
}

function readTool(tool: string, listed: unknown): ListedTool & { text: string } {
  const { description, inputSchema, annotations } = { ...(listed as object) } as Record<string, unknown>
  return {
    tool,
    description: typeof description === 'string' ? description : '',
    inputSchema: inputSchema ?? null,
    annotations: annotations ?? null,
    since: 0,
    listed,
    text: JSON.stringify(listed),
  }
}
