// What a schema says of one value by itself: its kind, what it may be, and its bounds.
import { isMultiple } from '../../lib/multiple.ts'
import { patternOf } from '../pattern.ts'
import type { Keyword, Said } from './keyword.ts'
import { isObject } from './dialects.ts'
import { sameText } from './same.ts'
import type { Check } from './turn.ts'
import { short, Unusable } from './unusable.ts'

const kinds: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
}

/** Each by its keyword. */
export const assertions: Readonly<Record<string, Keyword>> = {
  type: ({ said, place }) => {
    const names = [...new Set(Array.isArray(said) ? (said as unknown[]) : [said])]
    const tests = names.map((name) => {
      const test = typeof name === 'string' && Object.hasOwn(kinds, name) ? kinds[name] : undefined
      if (test === undefined) throw new Unusable(place, said, `of ${Object.keys(kinds).join(', ')}`)
      return test
    })
    const expected = names.join(' or ')
    return (value, { at }) =>
      tests.some((test) => test(value)) ? null : `${at}: got ${kindOf(value)}, expected ${expected}`
  },
  enum: ({ said, place }) => {
    if (!Array.isArray(said)) throw new Unusable(place, said, 'a list')
    const [known, expected] = [new Set(said.map(sameText)), short(said)]
    return (value, { at }) => (known.has(sameText(value)) ? null : `${at}: expected one of ${expected}`)
  },
  const: ({ said }) => {
    const [known, expected] = [sameText(said), short(said)]
    return (value, { at }) => (sameText(value) === known ? null : `${at}: expected ${expected}`)
  },
  multipleOf: ({ said, place }) => {
    if (typeof said !== 'number' || said <= 0) throw new Unusable(place, said, 'a number above 0')
    return (value, { at }) =>
      typeof value !== 'number' || isMultiple(value, said)
        ? null
        : `${at}: got ${value}, expected a multiple of ${said}`
  },
  minimum: (said) => bound(said, 'at least', (value, limit) => value >= limit),
  maximum: (said) => bound(said, 'at most', (value, limit) => value <= limit),
  exclusiveMinimum: (said) => bound(said, 'more than', (value, limit) => value > limit),
  exclusiveMaximum: (said) => bound(said, 'less than', (value, limit) => value < limit),
  minLength: (said) => count(said, letters, 'characters'),
  maxLength: (said) => count(said, letters, 'characters'),
  minItems: (said) => count(said, items, 'items'),
  maxItems: (said) => count(said, items, 'items'),
  minProperties: (said) => count(said, names, 'members'),
  maxProperties: (said) => count(said, names, 'members'),
  pattern: ({ said, place }) => {
    const [pattern, expected] = [regularExpression(said, place), short(said)]
    return (value, { at }) =>
      typeof value !== 'string' || pattern.test(value) ? null : `${at}: must match pattern ${expected}`
  },
  uniqueItems: ({ said, place }) => {
    if (typeof said !== 'boolean') throw new Unusable(place, said, 'true or false')
    if (!said) return null
    return (value, { at }) =>
      !Array.isArray(value) || new Set(value.map(sameText)).size === value.length
        ? null
        : `${at}: expected no item twice`
  },
  required: ({ said, place }) => {
    const names = texts(said, place)
    return (value, { at }) => {
      const missing = isObject(value) ? names.find((name) => !Object.hasOwn(value, name)) : undefined
      return missing === undefined ? null : `${at}: ${short(missing)} is missing`
    }
  },
  dependentRequired: ({ said, place }) => {
    if (!isObject(said)) throw new Unusable(place, said, 'an object')
    const needs = Object.entries(said).map(([name, one]) => [name, texts(one, `${place}/${name}`)] as const)
    return (value, { at }) => (isObject(value) ? lacking(value, needs, at) : null)
  },
}

/** What is missing beside a member that is there. */
export function lacking(
  value: object,
  needs: readonly (readonly [string, readonly string[]])[],
  at: string,
): string | null {
  for (const [name, others] of needs) {
    const missing = Object.hasOwn(value, name)
      ? others.find((other) => !Object.hasOwn(value, other))
      : undefined
    if (missing !== undefined) return `${at}: ${short(missing)} is missing beside ${short(name)}`
  }
  return null
}

/** A list of names. @throws Unusable */
export function texts(said: unknown, place: string): readonly string[] {
  if (Array.isArray(said) && said.every((one) => typeof one === 'string')) return said
  throw new Unusable(place, said, 'a list of names')
}

/** @throws Unusable for what is no text, or no pattern */
export function regularExpression(said: unknown, place: string): RegExp {
  if (typeof said !== 'string') throw new Unusable(place, said, 'a regular expression')
  try {
    return patternOf(said)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const why = error.message.split(': ').at(-1) // behind the pattern itself, which may be long
    throw new Unusable(place, said, `a regular expression (${why})`)
  }
}

/** A number's bound; in draft-04 the exclusive ones are words about `minimum` and `maximum`. */
function bound(
  { word, said, schema, place, compiler }: Said,
  expected: string,
  holds: (value: number, limit: number) => boolean,
): Check | null {
  const isWord = compiler.dialect.name === 'draft-04' && typeof said === 'boolean'
  const limit = isWord ? schema[word === 'exclusiveMinimum' ? 'minimum' : 'maximum'] : said
  if (isWord && (!said || limit === undefined)) return null
  if (typeof limit !== 'number') throw new Unusable(place, said, 'a number')
  return (value, { at }) =>
    typeof value !== 'number' || holds(value, limit)
      ? null
      : `${at}: got ${value}, expected ${expected} ${limit}`
}

function count({ word, said, place }: Said, measure: (value: unknown) => number | null, what: string): Check {
  if (typeof said !== 'number' || !Number.isInteger(said) || said < 0)
    throw new Unusable(place, said, 'a whole number, not below 0')
  const isLeast = word.startsWith('min')
  return (value, { at }) => {
    const measured = measure(value)
    if (measured === null || (isLeast ? measured >= said : measured <= said)) return null
    return `${at}: got ${measured} ${what}, expected at ${isLeast ? 'least' : 'most'} ${said}`
  }
}

function letters(value: unknown): number | null {
  if (typeof value !== 'string') return null
  let count = 0
  for (const _letter of value) count += 1
  return count
}
const items = (value: unknown): number | null => (Array.isArray(value) ? value.length : null)
const names = (value: unknown): number | null => (isObject(value) ? Object.keys(value).length : null)

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
