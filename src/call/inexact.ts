// Numbers that a double does not hold: found in a text, and held against the schema that would judge another in their place.

import { inexactIn, mayBeInexact, parts, parseWritten, WrittenNumber } from '../lib/one-way.ts'

/** A number as it is written, and as a double has it. */
export interface Inexact {
  readonly written: string
  readonly read: number
}

/**
 * The first number of a JSON text that its canonical form, or a reader with doubles, takes for another; null when there is
 * none. What a person approves by the canonical form must be what a server with long integers or decimals reads.
 */
export function inexactNumber(json: string): Inexact | null {
  if (!mayBeInexact(json)) return null
  for (const first of inexactIn(json)) return first
  return null
}

/**
 * The first number of a JSON text of which a schema could say something else than of the double beside it; null where every
 * verdict is the written number's own. An id of 64 bits is an integer whichever of the two is read, and so it passes.
 */
export function misjudged(json: string, schema: unknown): Inexact | null {
  let [first, count]: [Inexact | null, number] = [null, 0]
  for (const number of inexactIn(json)) {
    first ??= number
    if (++count > most.numbers) return first
  }
  if (first === null) return null
  const value = parseWritten(json)
  try {
    return new Reading(schema).find(value, schema)
  } catch (error) {
    if (error instanceof TooMuch) return firstIn(value)
    throw error
  }
}

function firstIn(value: unknown): Inexact | null {
  if (value instanceof WrittenNumber) return value
  if (typeof value !== 'object' || value === null) return null
  for (const inner of Object.values(value)) {
    const found = firstIn(inner)
    if (found !== null) return found
  }
  return null
}

type Schema = Readonly<Record<string, unknown>>

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const listed = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : [])
const members = (value: unknown): readonly unknown[] => (isSchema(value) ? Object.values(value) : [])

/** Schemas that judge the same value */
const beside = ['not', 'if', 'then', 'else'] as const
const besideLists = ['allOf', 'anyOf', 'oneOf'] as const
/** Keywords that lead to a schema in ways that are not followed */
const winding = ['$dynamicRef', '$recursiveRef', '$id', 'id', 'dependencies'] as const
/** Numbers in a text, looks at a value beside a schema, and how deep one may lead to the next: whoever asks for more has every number taken for misjudged */
const most = { numbers: 50_000, looks: 200_000, depth: 500 } as const

class TooMuch extends Error {}

/** One look at a value beside a schema. More schemas are taken to judge a value than do, never fewer. */
class Reading {
  readonly #root: unknown
  readonly #seen = new Map<Schema, Set<object>>()
  #looks = 0

  constructor(root: unknown) {
    this.#root = root
  }

  find(value: unknown, schema: unknown, depth = 0): Inexact | null {
    if (!isSchema(schema)) return null
    this.#looks += 1 + listed(schema['enum']).length
    if (this.#looks > most.looks || depth > most.depth) throw new TooMuch()
    if (typeof value !== 'object' || value === null || this.#knows(schema, value)) return null
    if (this.#isWinding(schema) || isCompared(value, schema)) {
      const found = firstIn(value)
      if (found !== null) return found
    }
    if (value instanceof WrittenNumber && hangsOn(value, schema)) return value
    for (const other of this.#beside(schema)) {
      const found = this.find(value, other, depth + 1)
      if (found !== null) return found
    }
    return value instanceof WrittenNumber ? null : this.#below(value, schema, depth)
  }

  #knows(schema: Schema, value: object): boolean {
    const values = this.#seen.get(schema) ?? new Set()
    this.#seen.set(schema, values)
    return values.size === values.add(value).size
  }

  #isWinding(schema: Schema): boolean {
    if (schema['$ref'] !== undefined && this.#resolved(schema['$ref']) === undefined) return true
    return winding.some(
      (keyword) => schema[keyword] !== undefined && (schema !== this.#root || !keyword.endsWith('id')),
    )
  }

  #beside(schema: Schema): readonly unknown[] {
    return [
      ...beside.map((keyword) => schema[keyword]),
      ...besideLists.flatMap((keyword) => listed(schema[keyword])),
      ...members(schema['dependentSchemas']),
      this.#resolved(schema['$ref']),
    ]
  }

  #below(value: object, schema: Schema, depth: number): Inexact | null {
    const { properties, patternProperties, additionalProperties, unevaluatedProperties } = schema
    const { items, prefixItems, additionalItems, unevaluatedItems, contains } = schema
    const ofAll = Array.isArray(value)
      ? [items, ...listed(items), ...listed(prefixItems), additionalItems, unevaluatedItems, contains]
      : [...members(patternProperties), additionalProperties, unevaluatedProperties]
    for (const [key, inner] of Object.entries(value)) {
      const own = isSchema(properties) && Object.hasOwn(properties, key) ? [properties[key]] : []
      for (const other of [...own, ...ofAll]) {
        const found = this.find(inner, other, depth + 1)
        if (found !== null) return found
      }
    }
    return null
  }

  /** The schema that a reference within the root names by a pointer; undefined for every other reference. */
  #resolved(reference: unknown): unknown {
    if (typeof reference !== 'string' || !/^#(?:\/[^%]*)?$/.test(reference)) return undefined
    let place: unknown = this.#root
    for (const step of reference.split('/').slice(1)) {
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
      if (typeof place !== 'object' || place === null || !Object.hasOwn(place, key)) return undefined
      place = (place as Schema)[key]
    }
    return place
  }
}

/** Held against values that the schema lists, or against its neighbours, as a whole. */
function isCompared(value: object, { enum: values, const: constant, uniqueItems }: Schema): boolean {
  if (Array.isArray(value) && uniqueItems === true && value.length > 1) return true
  return (
    !(value instanceof WrittenNumber) &&
    [constant, ...listed(values)].some((one) => typeof one === 'object' && one !== null)
  )
}

/**
 * Rounding keeps the order of numbers, so a bound tells the written number from the read one only where the read one is the
 * bound itself; a list only where the read one is in it.
 */
function hangsOn({ written, read }: Inexact, schema: Schema): boolean {
  const { type, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  const { digits, power } = parts(written)
  const isInteger = digits === '' || power >= 0
  if ([type].flat().includes('integer') && isInteger !== Number.isInteger(read)) return true
  const told = [
    minimum,
    maximum,
    exclusiveMinimum,
    exclusiveMaximum,
    schema['const'],
    ...listed(schema['enum']),
  ]
  return multipleOf !== undefined || told.includes(read)
}
