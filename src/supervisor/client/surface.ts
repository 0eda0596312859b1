// Asks a server what it lists: all that can be accepted of it, page by page, within bounds.
import { hash } from 'node:crypto'
import { SallyportError } from '../../errors.ts'
import { isReadable, readAnswer, readPage } from '../message/read-answer.ts'
import { printable } from '../message/unavailable.ts'
import { inTurns } from '../../lib/in-turns.ts'
import { JsonScanError } from '../../lib/json-scan.ts'
import { allIn, listIn, parseOneWay, readOneWay } from '../../lib/one-way.ts'
import { parseJson } from '../../lib/parse-json.ts'
import type { Observation } from '../../schema/governor.ts'
import type { Answer } from './answer.ts'

/** What a server said of itself in the handshake; null capabilities where there was none. */
export interface Introduction {
  readonly capabilities: Readonly<Record<string, unknown>> | null
  readonly instructions: string | null
  /** The version that it says it is; null where it need not say any, and says none */
  readonly version: string | null
}

export type Surface = Pick<Observation, 'tools' | 'rest' | 'saidVersion'> & {
  /** Methods of whose list there is more than was read */
  readonly cut: ReadonlySet<string>
}

type Request = (method: string, params: string) => Promise<Answer>

export const unknownServer: Introduction = { capabilities: null, instructions: null, version: null }

/** Pages of one list beyond which a server is not listing but talking */
const maxPages = 100
/** Longest lists, all pages together, characters */
const maxLength = 8_388_608
/** Prompts, and templates, that are compared with what was accepted: what is beyond of such a list is not */
const maxRest = 1024
/** A version beyond so many characters is known by its digest */
const maxVersion = 128
/** Of a tool that is longer nobody looks at what it is, however much of it is written as escapes, characters */
const longestTool = 6 * 262_144
const methodNotFound = -32601

/** Reads what of the handshake's result says who the server is. */
export function readIntroduction(result: unknown): Introduction {
  const { capabilities, instructions } = asRecord(result)
  return {
    capabilities: typeof capabilities === 'object' ? asRecord(capabilities) : null,
    instructions: typeof instructions === 'string' ? instructions : null,
    version: saidVersion(asRecord(result)),
  }
}

/** A handshake has to say one; in the later era a server may. */
function saidVersion({
  serverInfo,
  protocolVersion,
  _meta: meta,
}: Readonly<Record<string, unknown>>): string | null {
  const info = serverInfo ?? asRecord(meta)['io.modelcontextprotocol/serverInfo']
  const { version } = asRecord(info)
  if (typeof version !== 'string') return protocolVersion === undefined ? null : ''
  return version.length > maxVersion ? `sha256:${hash('sha256', version)}` : version
}

/** What a server of the later era says of itself when it is asked; nothing where it has no answer to that. */
export async function introductionOf(request: Request): Promise<Introduction> {
  const answer = await request('server/discover', '{}')
  if (answer.kind === 'error') return unknownServer
  return readIntroduction(readAnswer('server/discover', answer.result.raw))
}

/** Asks for tools, prompts and resource templates, as far as the server has them; at most `limit` tools. */
export async function readSurface(
  request: Request,
  { capabilities, instructions, version }: Introduction,
  limit: number,
): Promise<Surface> {
  const has = (name: string): boolean => capabilities === null || Object.hasOwn(capabilities, name)
  const cut = new Set<string>()
  const readRest = (method: string): Promise<readonly unknown[] | null> => {
    const list = { method, member: restLists.get(method) ?? '', limit: maxRest, cut: () => cut.add(method) }
    return entriesThere(request, list)
  }
  const none: readonly unknown[] = []
  const [tools, prompts, templates] = await Promise.all([
    has('tools') ? readTools(request, limit) : new Map<string, unknown>(),
    has('prompts') ? readRest('prompts/list') : none,
    has('resources') ? readRest('resources/templates/list') : none,
  ])
  return { tools, saidVersion: version, rest: { instructions, prompts, templates }, cut }
}

/** Asks for the tools alone, by name; at most `limit`. One of which nobody can tell what it is, is a text that says why. */
export async function readTools(request: Request, limit: number): Promise<Surface['tools']> {
  const list = { method: 'tools/list', member: 'tools', limit, cut: () => undefined }
  const listed = await listAll(request, list)
  const tools = new Map<string, unknown>()
  for (const { tool, names } of await inTurns(toolsIn(listed)))
    for (const name of names)
      // Of two tools with one name nobody can tell which one a call would reach, nor of one with two.
      if (typeof name === 'string') tools.set(name, tools.has(name) ? 'its name is another tool’s too' : tool)
  return tools
}

interface Listed {
  readonly tool: unknown
  /** All that it calls itself */
  readonly names: readonly unknown[]
}

function* toolsIn(listed: readonly string[]): Generator<Listed> {
  for (const text of listed)
    yield {
      tool: toolOf(text),
      names: allIn(text, 'name').map((said): unknown => parseJson(said)),
    }
}

function toolOf(text: string): unknown {
  if (text.length > longestTool) return `it is longer than ${longestTool} characters`
  try {
    return readOneWay(text)
  } catch (error) {
    // Its message holds the key as the server wrote it, however long.
    if (error instanceof JsonScanError)
      return error.kind === 'duplicate' ? 'it says a key twice' : error.message
    throw error
  }
}

const restLists: ReadonlyMap<string, string> = new Map([
  ['prompts/list', 'prompts'],
  ['resources/templates/list', 'resourceTemplates'],
])

/** The prompts and templates of a server that were compared with what was accepted. */
export class Compared {
  readonly #entries: ReadonlySet<string>
  /** Methods of whose list there is more than was read */
  readonly #cut: ReadonlySet<string>

  constructor({ rest, cut }: Pick<Surface, 'rest' | 'cut'>) {
    const lists = Object.values(asRecord(rest)).filter((list): list is unknown[] => Array.isArray(list))
    this.#entries = new Set(lists.flat().map((entry) => JSON.stringify(entry)))
    this.#cut = cut
  }

  /** Whether an entry, as `entriesIn` gives it, was compared. */
  has(entry: string): boolean {
    return this.#entries.has(entry)
  }

  /** Whether an entry of the list that this method gives is certainly none that was; nothing is of a list that is longer than what was read of it. */
  lacks(method: string, entry: string): boolean {
    return restLists.has(method) && !this.#cut.has(method) && !this.has(entry)
  }
}

/** The same of the result of one such list; none of every other method's. What is more than is read is an entry that nobody accepted. */
export function entriesIn(method: string, result: string): readonly string[] {
  const list = restLists.get(method)
  if (list === undefined) return []
  if (!isReadable(result)) return [`${method}: more than is read`]
  return (listIn(result, list) ?? []).map(entryOf)
}

/** What an entry of such a list is known by; what two readers could take differently, by its text. */
export const entryOf = (text: string): string => JSON.stringify(parseOneWay(text) ?? text)

/** A server that makes no sense of the question lists nothing, and what is not there can't be accepted or change. */
async function entriesThere(...asked: Parameters<typeof listAll>): Promise<readonly unknown[] | null> {
  try {
    // What two readers could take differently is compared by its text.
    return (await listAll(...asked)).map((text) => parseOneWay(text) ?? text)
  } catch (thrown) {
    if (SallyportError.from(thrown).code === 'ERR_SERVER_PROTOCOL') return null
    throw thrown
  }
}

/** A list that a server is asked for. */
interface List {
  readonly method: string
  /** Where it stands in the result */
  readonly member: string
  /** Most entries that are read */
  readonly limit: number
  /** There is more of it than is read */
  readonly cut: () => void
}

/** The texts of what a server lists, page by page. */
async function listAll(request: Request, { method, member, limit, cut }: List): Promise<readonly string[]> {
  const all: string[] = []
  let cursor: string | null = null
  let length = 0
  for (let page = 0; page < maxPages && all.length < limit; page++) {
    const answer = await request(method, cursor === null ? '{}' : JSON.stringify({ cursor }))
    if (answer.kind === 'error') {
      if (answer.code === methodNotFound) return []
      throw new SallyportError(
        'ERR_SERVER_UNAVAILABLE',
        `${method} failed: ${printable(answer.message)} (${answer.code})`,
      )
    }
    length += answer.result.raw.length
    if (length > maxLength)
      throw new SallyportError('ERR_RESULT_TOO_LARGE', `${method} gave more than ${maxLength} characters`)
    const { listed, nextCursor } = await readPage(method, answer.result.raw, member)
    if (listed === null)
      throw new SallyportError('ERR_SERVER_PROTOCOL', `${method} gave no list of ${member}`)
    const room = limit - all.length
    all.push(...listed.slice(0, room))
    if (listed.length > room) cut()
    if (typeof nextCursor !== 'string' || nextCursor === cursor) return all
    cursor = nextCursor
  }
  cut()
  return all
}

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {}
