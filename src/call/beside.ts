// What a call says to its server beside its arguments: whoever is asked about it sees that, too.
import { members } from '../lib/json-scan.ts'
import { latin1, unicode } from '../lib/one-way.ts'
import { canonicalize } from './canonical.ts'

/** Of these a person is told otherwise, or nothing is to be told: the name is the identity's, and a token counts requests */
const told = { params: new Set(['name', 'arguments']), meta: new Set(['progressToken']) } as const

/**
 * The other members of a call's params, in canonical form; null where there are none. `evidence` is the text of its params as it is
 * recorded, without a person's answers.
 */
export function besideArguments(evidence: string): string | null {
  const text = latin1(evidence)
  const values: Record<string, unknown> = {}
  for (const { key, start, end } of members(text, 0, text.length))
    if (!told.params.has(key)) put(values, key, JSON.parse(unicode(text.slice(start, end))))
  const { _meta, ...others } = values
  const meta = isObject(_meta) ? besideToken(_meta) : _meta
  const left = meta === undefined ? others : { ...others, _meta: meta }
  if (Object.keys(left).length === 0) return null
  try {
    return canonicalize(left)
  } catch {
    return JSON.stringify(left) // of half a character there is no canonical form, and an escape is as good
  }
}

/** Undefined where nothing is left. */
function besideToken(meta: object): object | undefined {
  const left = Object.entries(meta).filter(([key]) => !told.meta.has(key))
  return left.length === 0 ? undefined : Object.fromEntries(left)
}

/** A member of its own, also under the name `__proto__`. */
const put = (object: object, key: string, value: unknown): void =>
  void Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
