// Keywords that hold schemas: of the same value, of its members, of its items.
import { lacking, regularExpression, texts } from './assertions.ts'
import type { Keyword, Said } from './keyword.ts'
import { isObject } from './dialects.ts'
import { contains, items, prefixItems } from './items.ts'
import { beside, type Check, type Turn } from './turn.ts'
import { Unusable } from './unusable.ts'

/** Members that are looked for by their names in every object */
const mostLookedUp = 32

/** Each by its keyword; what `then`, `else`, `minContains` and `maxContains` say is said with what they belong to. */
export const applicators: Readonly<Record<string, Keyword>> = {
  allOf: (said) => {
    const checks = listOf(said)
    return (value, turn) => {
      for (const check of checks) {
        const problem = beside(check, value, turn)
        if (problem !== null) return problem
      }
      return null
    }
  },
  anyOf: (said) => {
    const checks = listOf(said)
    return (value, turn) => {
      let fits = 0
      for (const check of checks) {
        if (beside(check, value, turn) === null) fits += 1
        if (fits > 0 && turn.seen === null) return null
      }
      return fits > 0 ? null : `${turn.at}: fits none of ${checks.length} alternatives`
    }
  },
  oneOf: (said) => {
    const checks = listOf(said)
    return (value, turn) => {
      const fits = checks.filter((check) => beside(check, value, turn) === null).length
      return fits === 1
        ? null
        : `${turn.at}: fits ${fits} of ${checks.length} alternatives, expected exactly one`
    }
  },
  not: ({ said, below, compiler }) => {
    const check = below(said)
    return (value, turn) =>
      check(value, { ...turn, seen: compiler.anew() }) === null ? `${turn.at}: fits what it must not` : null
  },
  if: ({ said, schema, place, below, resource, compiler }) => {
    const branch = (word: string): Check | null =>
      Object.hasOwn(schema, word) ? compiler.check(schema[word], resource, place.replace(/if$/, word)) : null
    const [condition, yes, no] = [below(said), branch('then'), branch('else')]
    return (value, turn) => {
      const next = beside(condition, value, turn) === null ? yes : no
      return next === null ? null : beside(next, value, turn)
    }
  },
  dependentSchemas: (said) => {
    const checks = membersOf(said)
    return (value, turn) => (isObject(value) ? brought(checks, value, turn) : null)
  },
  dependencies: (said) => {
    const { place, below } = said
    const all = Object.entries(objectOf(said))
    const needs = all.flatMap(([name, one]) =>
      Array.isArray(one) ? [[name, texts(one, `${place}/${name}`)] as const] : [],
    )
    const checks = all.flatMap(([name, one]) =>
      Array.isArray(one) ? [] : [[name, below(one, name)] as const],
    )
    return (value, turn) =>
      isObject(value) ? (lacking(value, needs, turn.at) ?? brought(checks, value, turn)) : null
  },
  propertyNames: ({ said, below, compiler }) => {
    const check = below(said)
    return (value, { at, scope }) => {
      if (!isObject(value)) return null
      for (const name of Object.keys(value)) {
        const problem = check(name, { at: `${at}: the name ${name}`, scope, seen: compiler.anew() })
        if (problem !== null) return problem
      }
      return null
    }
  },
  properties: (said) => {
    const checks = new Map(membersOf(said))
    return (value, turn) => {
      if (!isObject(value)) return null
      // Many small objects are judged by one long list.
      const named = checks.size > mostLookedUp ? Object.keys(value) : checks.keys()
      for (const name of named) {
        const check = Object.hasOwn(value, name) ? checks.get(name) : undefined
        const problem = check === undefined ? null : member(check, value[name], name, turn, said)
        if (problem !== null) return problem
      }
      return null
    }
  },
  patternProperties: (said) => {
    const checks = patternsOf(said)
    return (value, turn) => {
      if (!isObject(value)) return null
      for (const [name, one] of Object.entries(value))
        for (const [pattern, check] of checks) {
          const problem = pattern.test(name) ? member(check, one, name, turn, said) : null
          if (problem !== null) return problem
        }
      return null
    }
  },
  additionalProperties: (said) => {
    const { schema, below } = said
    const known = new Set(Object.keys(isObject(schema['properties']) ? schema['properties'] : {}))
    const patterns = Object.keys(isObject(schema['patternProperties']) ? schema['patternProperties'] : {})
    const others = patterns.map((pattern) => regularExpression(pattern, said.place))
    const check = below(said.said)
    const problemOf = said.said === false ? noSuch : check
    return (value, turn) => {
      if (!isObject(value)) return null
      for (const [name, one] of Object.entries(value)) {
        if (known.has(name) || others.some((pattern) => pattern.test(name))) continue
        const problem = member(problemOf, one, name, turn, said)
        if (problem !== null) return problem
      }
      return null
    }
  },
  prefixItems,
  items,
  contains,
}

/** Judges a member, which has been looked at from then on. */
export function member(
  check: Check,
  value: unknown,
  name: string,
  { at, scope, seen }: Turn,
  { compiler }: Pick<Said, 'compiler'>,
): string | null {
  seen?.names.add(name)
  return check(value, { at: `${at}/${step(name)}`, scope, seen: compiler.anew() })
}

const step = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

/** Of a member that a schema has no room for. */
export const noSuch: Check = (_value, { at }) => `${at}: the tool takes no such argument`

/** Judges an object by the schemas that its members bring. */
function brought(checks: readonly (readonly [string, Check])[], value: object, turn: Turn): string | null {
  for (const [name, check] of checks) {
    const problem = Object.hasOwn(value, name) ? beside(check, value, turn) : null
    if (problem !== null) return problem
  }
  return null
}

function listOf({ said, place, below }: Said): readonly Check[] {
  if (!Array.isArray(said) || said.length === 0) throw new Unusable(place, said, 'a list of schemas')
  return said.map((one, at) => below(one, at))
}

function objectOf({ said, place }: Said): Readonly<Record<string, unknown>> {
  if (!isObject(said)) throw new Unusable(place, said, 'an object of schemas')
  return said
}

const membersOf = (said: Said): readonly (readonly [string, Check])[] =>
  Object.entries(objectOf(said)).map(([name, one]) => [name, said.below(one, name)])

const patternsOf = (said: Said): readonly (readonly [RegExp, Check])[] =>
  Object.entries(objectOf(said)).map(([pattern, one]) => [
    regularExpression(pattern, said.place),
    said.below(one, pattern),
  ])
