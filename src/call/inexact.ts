// Numbers that a double does not hold: found in a text, and held against the schema that would judge another in their place.
import { inexactIn, mayBeInexact, parseWritten, WrittenNumber } from '../lib/one-way.ts'
import { isSchema, type Reach, reachOf, type Schema } from './reach.ts'

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
  try {
    return new Reading(schema).find(parseWritten(json), schema)
  } catch (error) {
    if (error instanceof TooMuch) return first
    throw error
  }
}

/** Numbers in a text, looks at a value beside a schema and at the parts of either, and how deep one may lead to the next: whoever asks for more has every number taken for misjudged */
const most = { numbers: 16_000, looks: 200_000, depth: 500 } as const

class TooMuch extends Error {}

/** One look at a value beside a schema; what holds none of the numbers is passed over. */
class Reading {
  readonly #root: unknown
  readonly #reaches = new Map<Schema, Reach>()
  readonly #seen = new Map<Schema, Set<object>>()
  /** Lists and objects that hold one of the numbers -> where, and what leads there */
  readonly #holders = new Map<object, readonly (readonly [string, object])[]>()
  #looksLeft: number = most.looks

  constructor(root: unknown) {
    this.#root = root
  }

  find(value: unknown, schema: unknown): Inexact | null {
    if (!isSchema(schema) || !this.#holds(value)) return null
    return this.#find(value as object, schema, 0)
  }

  /** Notes where the numbers are. */
  #holds(value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false
    if (value instanceof WrittenNumber) return true
    const holding = Object.entries(value).filter(([, inner]) => this.#holds(inner)) as [string, object][]
    if (holding.length > 0) this.#holders.set(value, holding)
    return holding.length > 0
  }

  #find(value: object, schema: Schema, depth: number): Inexact | null {
    this.#spend(1)
    if (depth > most.depth) throw new TooMuch()
    if (this.#knows(schema, value)) return null
    const reach = this.#reachOf(schema)
    if (reach.isWinding || isCompared(value, reach)) return this.#firstIn(value)
    if (value instanceof WrittenNumber && reach.tells(value)) return value
    for (const other of reach.beside) {
      const found = this.#find(value, other, depth + 1)
      if (found !== null) return found
    }
    for (const [key, inner] of this.#holders.get(value) ?? []) {
      this.#spend(1)
      for (const other of reach.below(key, Array.isArray(value))) {
        const found = this.#find(inner, other, depth + 1)
        if (found !== null) return found
      }
    }
    return null
  }

  #knows(schema: Schema, value: object): boolean {
    const values = this.#seen.get(schema) ?? new Set()
    this.#seen.set(schema, values)
    return values.size === values.add(value).size
  }

  #reachOf(schema: Schema): Reach {
    const known = this.#reaches.get(schema)
    if (known !== undefined) return known
    const reach = reachOf(schema, this.#root, (parts) => this.#spend(parts))
    this.#reaches.set(schema, reach)
    return reach
  }

  #spend(looks: number): void {
    this.#looksLeft -= looks
    if (this.#looksLeft < 0) throw new TooMuch()
  }

  #firstIn(value: object): Inexact | null {
    for (let at: object | undefined = value; at !== undefined; at = this.#holders.get(at)?.[0]?.[1])
      if (at instanceof WrittenNumber) return at
    return null
  }
}

/** Held against values that the schema lists, or against its neighbours, as a whole. */
function isCompared(value: object, { comparesItems, comparesWhole }: Reach): boolean {
  if (Array.isArray(value) && comparesItems && value.length > 1) return true
  return comparesWhole && !(value instanceof WrittenNumber)
}
