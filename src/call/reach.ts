// What one schema says of the numbers below a value, and which schemas it leads to: found out once, however many values are held against it.
import { parts, type WrittenNumber } from '../lib/one-way.ts'

/** A schema that is no boolean: what a boolean says is said of every number alike. */
export type Schema = Readonly<Record<string, unknown>>

/** Of one schema, as far as numbers go that a double does not hold. More schemas are taken to judge a value than do, never fewer. */
export interface Reach {
  /** It leads on in ways that are not followed */
  readonly isWinding: boolean
  /** Holds a list or an object as a whole against others that it lists */
  readonly comparesWhole: boolean
  /** Holds the items of a list against one another */
  readonly comparesItems: boolean
  /** Tells a number from the double beside it */
  tells(number: WrittenNumber): boolean
  /** Schemas that judge the same value */
  readonly beside: readonly Schema[]
  /** Schemas that judge a member, or an item, of the value */
  below(key: string, isItem: boolean): readonly Schema[]
}

const beside = ['not', 'if', 'then', 'else'] as const
const besideLists = ['allOf', 'anyOf', 'oneOf'] as const
const ofMembers = ['additionalProperties', 'unevaluatedProperties'] as const
const ofItems = ['items', 'additionalItems', 'unevaluatedItems', 'contains'] as const
const byPlace = ['prefixItems', 'items'] as const
const bounds = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'const'] as const
/** Keywords that lead to a schema in ways that are not followed */
const winding = ['$dynamicRef', '$recursiveRef', '$id', 'id', 'dependencies'] as const

/** `spend` is told how many parts of the schema were looked at, and may throw. */
export function reachOf(schema: Schema, root: unknown, spend: (parts: number) => void): Reach {
  const listed = (value: unknown): readonly unknown[] => {
    if (!Array.isArray(value)) return []
    spend(value.length)
    return value as unknown[]
  }
  const members = (value: unknown): readonly (readonly [string, unknown])[] => {
    const all = isSchema(value) ? Object.entries(value) : []
    spend(all.length)
    return all
  }
  const { $ref, type, enum: values, multipleOf, uniqueItems, properties, patternProperties } = schema
  const target = $ref === undefined ? null : resolved($ref, root, spend)
  const list = [schema['const'], ...listed(values)]
  const told = new Set<unknown>([...bounds.map((keyword) => schema[keyword]), ...list])
  const saysInteger = type === 'integer' || listed(type).includes('integer')
  const named = new Map(members(properties))
  const everyMember = [
    ...ofMembers.map((keyword) => schema[keyword]),
    ...members(patternProperties).map(([, one]) => one),
  ].filter(isSchema)
  const everyItem = ofItems.map((keyword) => schema[keyword]).filter(isSchema)
  const places = byPlace.map((keyword) => listed(schema[keyword]))
  return {
    isWinding:
      target === undefined ||
      winding.some(
        (keyword) => schema[keyword] !== undefined && (schema !== root || !keyword.endsWith('id')),
      ),
    comparesWhole: list.some((one) => typeof one === 'object' && one !== null),
    comparesItems: uniqueItems === true,
    // Rounding keeps the order of numbers, so a bound tells the two apart only where the double is the bound itself; a list
    // only where the double is in it.
    tells: ({ written, read }) =>
      multipleOf !== undefined ||
      told.has(read) ||
      (saysInteger && isInteger(written) !== Number.isInteger(read)),
    beside: [
      target,
      ...beside.map((keyword) => schema[keyword]),
      ...besideLists.flatMap((keyword) => listed(schema[keyword])),
      ...members(schema['dependentSchemas']).map(([, one]) => one),
    ].filter(isSchema),
    below: (key, isItem) => {
      const own = isItem ? places.map((place) => place[Number(key)]) : [named.get(key)]
      return [...own.filter(isSchema), ...(isItem ? everyItem : everyMember)]
    },
  }
}

export const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isInteger(written: string): boolean {
  const { digits, power } = parts(written)
  return digits === '' || power >= 0
}

/**
 * What a reference within the root names by a pointer that every reader takes for the same; undefined for every other
 * reference, and where the way there leads into a schema with an address of its own.
 */
function resolved(reference: unknown, root: unknown, spend: (parts: number) => void): unknown {
  if (typeof reference !== 'string' || !plainPointer.test(reference)) return undefined
  const steps = reference.split('/').slice(1)
  spend(steps.length)
  let place: unknown = root
  for (const step of steps) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, key)) return undefined
    if (place !== root && isNamed(place as Schema)) return undefined
    place = (place as Schema)[key]
  }
  return place
}

/** No escape, and nothing that readers of addresses leave out or cut off */
const plainPointer = /^#(?:\/(?:[^%#\p{Cc}\p{Cs}]*[^%#\p{Cc}\p{Cs} ])?)?$/u

const isNamed = ({ $id, id }: Schema): boolean => typeof $id === 'string' || typeof id === 'string'
