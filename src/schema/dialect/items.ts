// Keywords about the items of a list: the first ones each by its own schema, the rest by one, and how many fit another.
import type { Keyword, Said } from './keyword.ts'
import type { Check, Turn } from './turn.ts'
import { Unusable } from './unusable.ts'

/** The first items, each by its own schema. */
export const prefixItems: Keyword = ({ said, place, below, compiler }) => {
  if (!Array.isArray(said)) throw new Unusable(place, said, 'a list of schemas')
  const checks = said.map((one, at) => below(one, at))
  return (value, turn) => (Array.isArray(value) ? first(checks, value, turn, compiler) : null)
}

/** The items behind those; before 2020-12 a list is what `prefixItems` is there, and the rest is for `additionalItems`. */
export const items: Keyword = (said) => {
  const { schema, place, compiler } = said
  if (compiler.dialect.has.has('prefixItems')) return rest(said, lengthOf(schema['prefixItems']))
  if (!Array.isArray(said.said)) return rest(said, 0)
  const before = prefixItems(said)
  if (schema['additionalItems'] === undefined) return before
  const check = compiler.check(
    schema['additionalItems'],
    said.resource,
    place.replace(/items$/, 'additionalItems'),
  )
  const after = others(check, said.said.length, said)
  return (value, turn) => before?.(value, turn) ?? after(value, turn)
}

/** How many items fit a schema: `minContains`, or one, to `maxContains`. */
export const contains: Keyword = ({ said, schema, below, compiler }) => {
  const { has, containsLooks } = compiler.dialect
  const check = below(said)
  const least = has.has('minContains') ? limit(schema['minContains'], 1) : 1
  const most = has.has('maxContains') ? limit(schema['maxContains'], Infinity) : Infinity
  return (value, { at, scope, seen }) => {
    if (!Array.isArray(value)) return null
    let fits = 0
    for (const [place, one] of value.entries()) {
      if (check(one, { at: `${at}/${place}`, scope, seen: compiler.anew() }) !== null) continue
      fits += 1
      if (containsLooks) seen?.places.add(place)
    }
    if (fits < least) return `${at}: got ${fits} items that fit, expected at least ${least}`
    return fits > most ? `${at}: got ${fits} items that fit, expected at most ${most}` : null
  }
}

/** Judges an item, which has been looked at from then on. */
export function item(
  check: Check,
  value: unknown,
  place: number,
  turn: Turn,
  { compiler }: Pick<Said, 'compiler'>,
): string | null {
  turn.seen?.places.add(place)
  return check(value, { at: `${turn.at}/${place}`, scope: turn.scope, seen: compiler.anew() })
}

function first(
  checks: readonly Check[],
  value: readonly unknown[],
  turn: Turn,
  compiler: Said['compiler'],
): string | null {
  for (const [place, check] of checks.entries()) {
    const problem = place < value.length ? item(check, value[place], place, turn, { compiler }) : null
    if (problem !== null) return problem
  }
  return null
}

const rest = (said: Said, from: number): Check => others(said.below(said.said), from, said)

function others(check: Check, from: number, said: Said): Check {
  return (value, turn) => {
    if (!Array.isArray(value)) return null
    for (let place = from; place < value.length; place += 1) {
      const problem = item(check, value[place], place, turn, said)
      if (problem !== null) return problem
    }
    return null
  }
}

const lengthOf = (list: unknown): number => (Array.isArray(list) ? list.length : 0)

function limit(said: unknown, otherwise: number): number {
  if (said === undefined) return otherwise
  if (typeof said === 'number' && Number.isInteger(said) && said >= 0) return said
  throw new Unusable('minContains or maxContains', said, 'a whole number, not below 0')
}
