// Finding a tool by what it is for: BM25 over names, descriptions and parameters, so that long lists need not be read.
import { inTurns } from '../lib/in-turns.ts'
import { normalized } from '../lib/marks.ts'

/** What a tool is searched by. */
export interface Searchable {
  readonly server: string
  readonly tool: string
  readonly description: string
  /** JSON Schema of the arguments; the names and descriptions of its properties count */
  readonly inputSchema: unknown
}

interface Indexed<T> extends Words {
  readonly entry: T
}

/** The words of one tool. */
interface Words {
  /** Term -> weighted occurrences */
  readonly terms: ReadonlyMap<string, number>
  readonly length: number
}

/** How fast further occurrences stop counting, and how much long texts are held back: the field's usual values */
const saturation = 1.2
const lengthPenalty = 0.75

const weights = { name: 4, server: 2, description: 1, parameter: 1 } as const
const maxParameters = 100

/**
 * Returns the entries that share a word with the query, best first, at most `limit`; ties keep the order of the entries.
 *
 * Words are compared folded and without their plural; `readFile`, `read_file` and `read-file` are the same two words.
 */
export async function search<T extends Searchable>(
  entries: readonly T[],
  query: string,
  limit: number,
): Promise<readonly T[]> {
  const asked = new Set(words(query))
  if (asked.size === 0 || entries.length === 0) return []
  const index = await inTurns(indexing(entries))
  const averageLength = index.reduce((sum, { length }) => sum + length, 0) / index.length
  const rarity = new Map([...asked].map((term) => [term, rarityOf(term, index)]))
  return index
    .map((one) => ({ entry: one.entry, score: scoreOf(one, rarity, averageLength) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ entry }) => entry)
}

function* indexing<T extends Searchable>(entries: readonly T[]): Generator<Indexed<T>, undefined> {
  for (const entry of entries) yield { entry, ...wordsOf(entry) }
}

function scoreOf<T>(
  { terms, length }: Indexed<T>,
  rarity: ReadonlyMap<string, number>,
  averageLength: number,
): number {
  let score = 0
  for (const [term, weight] of rarity) {
    const count = terms.get(term) ?? 0
    const held = saturation * (1 - lengthPenalty + (lengthPenalty * length) / averageLength)
    score += weight * ((count * (saturation + 1)) / (count + held))
  }
  return score
}

function rarityOf<T>(term: string, index: readonly Indexed<T>[]): number {
  const having = index.filter(({ terms }) => terms.has(term)).length
  return Math.log(1 + (index.length - having + 0.5) / (having + 0.5))
}

/** By their schemas, of which each tool has its own: the words of those that are searched again */
const known = new WeakMap<object, Searchable & Words>()

function wordsOf({ server, tool, description, inputSchema }: Searchable): Words {
  const schema = typeof inputSchema === 'object' ? inputSchema : null
  const before = schema === null ? undefined : known.get(schema)
  if (before?.server === server && before.tool === tool && before.description === description) return before
  const { terms, length } = indexed({ server, tool, description, inputSchema })
  if (schema !== null) known.set(schema, { server, tool, description, inputSchema: null, terms, length })
  return { terms, length }
}

function indexed(entry: Searchable): Words {
  const terms = new Map<string, number>()
  let length = 0
  const add = (text: string, weight: number): void => {
    for (const word of words(text)) {
      terms.set(word, (terms.get(word) ?? 0) + weight)
      length += weight
    }
  }
  add(entry.tool, weights.name)
  add(entry.server, weights.server)
  add(entry.description, weights.description)
  for (const text of parameterTexts(entry.inputSchema)) add(text, weights.parameter)
  return { terms, length }
}

function parameterTexts(schema: unknown): readonly string[] {
  const properties = member(schema, 'properties')
  if (typeof properties !== 'object' || properties === null) return []
  return Object.entries(properties)
    .slice(0, maxParameters)
    .flatMap(([name, property]) => {
      const description = member(property, 'description')
      return typeof description === 'string' ? [name, description] : [name]
    })
}

const member = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined

/** The words of a text: split at case changes and everything that is no letter or digit, folded, singular. */
function words(text: string): readonly string[] {
  return normalized(text, 'NFKC')
    .replaceAll(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .map((word) => (word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word))
}
