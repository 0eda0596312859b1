// What a call says to its server beside its arguments: whoever is asked about it sees that, too.
import { members } from '../lib/json-scan.ts'
import { latin1, parseWritten, unicode, WrittenNumber } from '../lib/one-way.ts'
import { onlyCounts } from '../lib/only-counts.ts'
import { RawJson, stringifyRaw } from '../lib/raw-json.ts'
import { canonicalize } from './canonical.ts'

/**
 * Of these a person is told otherwise, or nothing is to be told: the name is the identity's, of a subscription each thing is asked about
 * by itself, and a token that only counts tells nothing
 */
const told = {
  tool: new Set(['name', 'arguments']),
  method: new Set(['notifications']),
} as const
const ofProtocol = 'io.modelcontextprotocol/'
/** Longest text by which a host introduces itself in each request, and longest list of what it can do, characters */
const usual = { text: 64, capabilities: 512 } as const
/** A member that is longer is shown as it is written: to find its form takes long, and whoever reads it has time */
const longestRead = 65_536

/** Where a session says its call's lineage; of a control request, which says it by itself, it is shown there, too */
const lineageKey = 'sallyport/lineage'

type Kind = 'tool' | 'method'

interface Asked {
  readonly kind: Kind
  /** The text of its params as it is recorded, without a person's answers */
  readonly evidence: string
  readonly lineage: string | null
  /** The literal of its id, or null where that only counts */
  readonly id: string | null
}

/** Gives what whoever is asked about a call reads of it: its arguments in canonical form, and what else it says to its server. */
export const withBeside = (text: string, asked: Asked) => (): string => {
  const beside = besideArguments(asked)
  const all = beside === null ? text : `${text} and beside it ${beside}`
  return asked.id === null ? all : `${all} and as its id ${asked.id}`
}

/**
 * The other members of a call's params, in canonical form, or as they are written where there is none or they are long; null where
 * there are none. Left out is what each request of the later era says of its host, where it is no more than that. Of a request other
 * than of a tool all is its arguments, unless it is a subscription that is asked about thing by thing.
 */
export function besideArguments({ kind, evidence, lineage }: Omit<Asked, 'id'>): string | null {
  const text = latin1(evidence)
  const all = members(text, 0, text.length)
  if (kind === 'method' && !all.some(({ key }) => told.method.has(key))) return null
  const left: Record<string, unknown> = {}
  let isLong = false
  for (const { key, start, end } of all) {
    if (told[kind].has(key)) continue
    const written = unicode(text.slice(start, end))
    isLong ||= written.length > longestRead
    const value = written.length > longestRead ? new RawJson(written) : parseWritten(written)
    const shown = key === '_meta' && isObject(value) ? unusualIn(value) : value
    if (shown !== undefined) put(left, key, shown)
  }
  const meta = left['_meta']
  if (lineage !== null && (meta === undefined || isObject(meta)))
    put(left, '_meta', { ...meta, [lineageKey]: lineage })
  if (Object.keys(left).length === 0) return null
  if (isLong) return stringifyRaw(asWritten(left))
  try {
    return canonicalize(left)
  } catch {
    // Of half a character there is no canonical form, and its escape is as good.
    return stringifyRaw(asWritten(left))
  }
}

/** Undefined where nothing is left. */
function unusualIn(meta: object): object | undefined {
  const left = Object.entries(meta).filter(([key, value]) => !isUsual(key, value))
  return left.length === 0 ? undefined : Object.fromEntries(left)
}

function isUsual(key: string, value: unknown): boolean {
  switch (key) {
    case 'progressToken':
      return value instanceof WrittenNumber ? onlyCounts(value.written) : onlyCounts(JSON.stringify(value))
    case `${ofProtocol}protocolVersion`:
      return typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value)
    case `${ofProtocol}logLevel`:
      return typeof value === 'string' && /^[a-z]{1,16}$/.test(value)
    case `${ofProtocol}clientInfo`:
      return isObject(value) && Object.entries(value).every(isIntroduction)
    case `${ofProtocol}clientCapabilities`:
      return isObject(value) && JSON.stringify(value).length <= usual.capabilities && saysNoMore(value)
    default:
      return false
  }
}

const introductions: ReadonlySet<string> = new Set(['name', 'title', 'version', 'websiteUrl'])
const isIntroduction = ([key, value]: [string, unknown]): boolean =>
  introductions.has(key) && typeof value === 'string' && value.length <= usual.text

/** What a host can do is said by names and types, without a blank: nobody says a sentence by them. */
const isName = (text: string): boolean => /^[\w./;=+-]{1,64}$/.test(text)

function saysNoMore(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(saysNoMore)
  if (isObject(value)) return Object.entries(value).every(([key, inner]) => isName(key) && saysNoMore(inner))
  return typeof value === 'boolean' || (typeof value === 'string' && isName(value))
}

/** With its numbers as they are written. */
function asWritten(value: unknown): unknown {
  if (value instanceof WrittenNumber) return new RawJson(value.written)
  if (value instanceof RawJson) return value
  if (Array.isArray(value)) return value.map(asWritten)
  if (!isObject(value)) return value
  const all: Record<string, unknown> = {}
  for (const [key, inner] of Object.entries(value)) put(all, key, asWritten(inner))
  return all
}

/** A member of its own, also under the name `__proto__`. */
const put = (object: object, key: string, value: unknown): void =>
  void Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })

const isObject = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof WrittenNumber) &&
  !(value instanceof RawJson)
