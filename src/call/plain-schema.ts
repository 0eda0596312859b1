// The plain part of JSON Schema, in which most tools describe their arguments: judged here and now, in linear time.
import { beginning } from '../lib/clip.ts'
import { hasPlainWords } from '../schema/dialect/dialects.ts'

/** Null, or where and why a value is not what the schema says. */
export type Check = (value: unknown, at: string) => string | null

type Schema = Readonly<Record<string, unknown>>

/** Say something about a value without judging it, or judge it only where a dialect asks for that */
const annotations = new Set(
  '$comment title description default examples deprecated readOnly writeOnly format'.split(' '),
)
const maxDepth = 32
/** Steps of one judgement; a schema and a value of some thousands of parts each take millions together */
const maxSteps = 1_000_000

/** The judgement takes longer than here and now allows, whatever it would come to. */
export class TooLong extends Error {
  override readonly name = 'TooLong'
}

let stepsLeft = maxSteps
/** Objects -> their members, for as long as a judgement takes: to list many costs as much as to judge them */
const listed = new Map<object, readonly (readonly [string, unknown])[]>()

function spend(steps: number): void {
  stepsLeft -= steps
  if (stepsLeft < 0) throw new TooLong()
}

/** Null, or where and why a value is not what the schema of the check says. Throws TooLong. */
export function judgePlainly(check: Check, value: unknown, at: string, steps = maxSteps): string | null {
  stepsLeft = steps
  try {
    return check(value, at)
  } finally {
    if (listed.size > 0) listed.clear()
  }
}

function membersOf(value: object): readonly (readonly [string, unknown])[] {
  const known = listed.get(value)
  if (known !== undefined) return known
  const members = Object.entries(value)
  spend(members.length)
  listed.set(value, members)
  return members
}

/**
 * Makes a check of a schema that says only what can be judged without surprises: types, members, items, enumerations,
 * bounds, alternatives. Null for every other schema; a pattern, a reference or an unknown keyword is for a judge that
 * can be stopped.
 */
export function plainCheck(schema: unknown, depth = 0): Check | null {
  if (schema === true) return () => null
  if (!isSchema(schema) || depth > maxDepth) return null
  const checks: Check[] = []
  for (const [keyword, said] of Object.entries(schema)) {
    if (annotations.has(keyword) || (keyword === '$schema' && depth === 0 && hasPlainWords(said))) continue
    const make = Object.hasOwn(keywords, keyword) ? keywords[keyword] : undefined
    const check = make?.(said, schema, depth) ?? null
    if (check === null) return null
    checks.push(check)
  }
  return (value, at) => {
    spend(1 + checks.length)
    for (const check of checks) {
      const problem = check(value, at)
      if (problem !== null) return problem
    }
    return null
  }
}

type Keyword = (said: unknown, schema: Schema, depth: number) => Check | null

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: (value) => isSchema(value),
  array: (value) => Array.isArray(value),
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
}

const bound =
  (
    measure: (value: unknown) => number | null,
    holds: (got: number, limit: number) => boolean,
    word: string,
  ): Keyword =>
  (limit) =>
    typeof limit !== 'number'
      ? null
      : (value, at) => {
          const got = measure(value)
          return got === null || holds(got, limit) ? null : `${at}: got ${got}, expected ${word} ${limit}`
        }

const number = (value: unknown): number | null => (typeof value === 'number' ? value : null)
const letters = (value: unknown): number | null => {
  if (typeof value !== 'string') return null
  spend(value.length)
  return Array.from(value).length
}
const items = (value: unknown): number | null => (Array.isArray(value) ? value.length : null)
const atLeast = (got: number, limit: number): boolean => got >= limit
const atMost = (got: number, limit: number): boolean => got <= limit

const keywords: Readonly<Record<string, Keyword>> = {
  type: (said) => {
    const names = [...new Set(Array.isArray(said) ? (said as unknown[]) : [said])]
    const tests = names.map((name) =>
      typeof name === 'string' && Object.hasOwn(types, name) ? types[name] : undefined,
    )
    if (tests.includes(undefined) || tests.length === 0) return null
    const expected = names.join(' or ')
    return (value, at) =>
      tests.some((test) => test?.(value)) ? null : `${at}: got ${nameOf(value)}, expected ${expected}`
  },
  enum: (said) => (Array.isArray(said) && said.every(isScalar) ? oneOf(said) : null),
  const: (said) => (isScalar(said) ? oneOf([said]) : null),
  required: (said) => {
    if (!Array.isArray(said) || !said.every((name) => typeof name === 'string')) return null
    const words = new Map(said.map((name) => [name, beginning(JSON.stringify(name), 200)]))
    return (value, at) => {
      if (!isSchema(value)) return null
      spend(said.length)
      const missing = said.find((name) => !Object.hasOwn(value, name))
      return missing === undefined ? null : `${at}: ${words.get(missing)} is missing`
    }
  },
  properties: (said, _schema, depth) => {
    if (!isSchema(said)) return null
    const checks = Object.entries(said).map(([name, one]) => [name, plainCheck(one, depth + 1)] as const)
    if (checks.some(([, check]) => check === null)) return null
    return (value, at) => {
      if (!isSchema(value)) return null
      spend(checks.length)
      for (const [name, check] of checks) {
        const problem = Object.hasOwn(value, name) ? check?.(value[name], `${at}/${name}`) : null
        if (problem) return problem
      }
      return null
    }
  },
  additionalProperties: (said, { properties }, depth) => {
    const known = new Set(Object.keys(isSchema(properties) ? properties : {}))
    const check: Check | null =
      said === false ? (_value, at) => `${at}: the tool takes no such argument` : plainCheck(said, depth + 1)
    if (check === null) return null
    return (value, at) => {
      if (!isSchema(value)) return null
      const members = membersOf(value)
      spend(members.length)
      for (const [name, one] of members) {
        const problem = known.has(name) ? null : check(one, `${at}/${name}`)
        if (problem !== null) return problem
      }
      return null
    }
  },
  items: (said, _schema, depth) => {
    const check = plainCheck(said, depth + 1)
    if (check === null) return null
    return (value, at) => {
      if (!Array.isArray(value)) return null
      for (const [n, one] of value.entries()) {
        const problem = check(one, `${at}/${n}`)
        if (problem !== null) return problem
      }
      return null
    }
  },
  anyOf: (said, _schema, depth) => {
    if (!Array.isArray(said) || said.length === 0 || said.length > 16 || depth > 4) return null
    const checks = said.map((one) => plainCheck(one, depth + 1))
    if (checks.includes(null)) return null
    return (value, at) =>
      checks.some((check) => check?.(value, at) === null)
        ? null
        : `${at}: fits none of ${said.length} alternatives`
  },
  minimum: bound(number, atLeast, 'at least'),
  maximum: bound(number, atMost, 'at most'),
  exclusiveMinimum: bound(number, (got, limit) => got > limit, 'more than'),
  exclusiveMaximum: bound(number, (got, limit) => got < limit, 'less than'),
  minLength: bound(letters, atLeast, 'a length of at least'),
  maxLength: bound(letters, atMost, 'a length of at most'),
  minItems: bound(items, atLeast, 'a length of at least'),
  maxItems: bound(items, atMost, 'a length of at most'),
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isScalar = (value: unknown): boolean =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value)

function oneOf(allowed: readonly unknown[]): Check {
  const known = new Set(allowed)
  const expected = beginning(JSON.stringify(allowed), 200)
  return (value, at) => (known.has(value) ? null : `${at}: expected one of ${expected}`)
}

const nameOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
