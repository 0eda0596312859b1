// Makes a judge of a schema: each keyword becomes a check of one value, and all of the schema is read before any value is.
import { applicators } from './applicators.ts'
import { assertions } from './assertions.ts'
import { type Dialect, dialectOf, isObject, type SchemaObject } from './dialects.ts'
import type { Compiling, Keyword, Said } from './keyword.ts'
import { references } from './references.ts'
import { type Resource, Resources } from './resources.ts'
import { Seen } from './seen.ts'
import type { Check } from './turn.ts'
import { unevaluated } from './unevaluated.ts'
import { Unusable } from './unusable.ts'

/** In the order in which they judge: what has been looked at is known once all others have looked. */
const keywords: Readonly<Record<string, Keyword>> = {
  ...references,
  ...assertions,
  ...applicators,
  ...unevaluated,
}

const order: ReadonlyMap<string, readonly (readonly [number, string, Keyword])[]> = new Map(
  Object.entries(keywords).map(([word, make], at) => [word, [[at, word, make]]]),
)

/**
 * Returns what judges values by a schema: null, or what is wrong first.
 *
 * @throws Unusable where the schema is none, or has a reference that leads out of it
 */
export function judgeBy(schema: unknown): (value: unknown) => string | null {
  const compiler = new Compiler(schema, dialectOf(schema))
  const { root } = compiler.resources
  const check = compiler.check(schema, root, '#')
  return (value) =>
    check(value, { at: 'arguments', scope: { resource: root, outer: null }, seen: compiler.anew() })
}

/** Compiles the schemas of one document, each once. */
class Compiler implements Compiling {
  readonly dialect: Dialect
  readonly resources: Resources
  readonly #checks = new Map<SchemaObject, Check>()
  readonly #dynamic = new Map<string, ReadonlyMap<Resource, Check>>()
  #looksBack = false

  constructor(schema: unknown, dialect: Dialect) {
    this.dialect = dialect
    this.resources = new Resources(schema, dialect)
  }

  /** Says that some schema asks what others looked at. */
  looksBack(): void {
    this.#looksBack = true
  }

  /** What was looked at of a value that nothing has looked at. */
  anew(): Seen | null {
    return this.#looksBack ? new Seen() : null
  }

  /** @throws Unusable where it is no schema; `outer` is the resource that it is part of unless it begins one */
  check(schema: unknown, outer: Resource, place: string): Check {
    if (schema === true) return () => null
    if (schema === false) return (_value, { at }) => `${at}: nothing is allowed here`
    if (!isObject(schema)) throw new Unusable(place, schema, 'a schema')
    const known = this.#checks.get(schema)
    if (known !== undefined) return known
    const resource = this.resources.of(schema, outer, place)
    const checks: Check[] = []
    const check: Check = (value, turn) => {
      const { at, scope, seen } = turn
      const inner = scope.resource === resource ? turn : { at, scope: { resource, outer: scope }, seen }
      for (const one of checks) {
        const problem = one(value, inner)
        if (problem !== null) return problem
      }
      return null
    }
    this.#checks.set(schema, check) // before what it holds: a schema may lead to itself
    for (const [word, make] of this.#keywordsOf(schema)) {
      const at = `${place}/${word}`
      const below: Said['below'] = (inner, ...steps) => this.check(inner, resource, [at, ...steps].join('/'))
      const made = make({ word, said: schema[word], schema, resource, place: at, compiler: this, below })
      if (made !== null) checks.push(made)
    }
    return check
  }

  /** What a dynamic reference to a name may lead to, by the resource that has the name; compiled before anything is judged. */
  dynamic(anchor: string, place: string): ReadonlyMap<Resource, Check> {
    const known = this.#dynamic.get(anchor)
    if (known !== undefined) return known
    const checks = new Map<Resource, Check>()
    this.#dynamic.set(anchor, checks) // before what they hold: a schema may lead to itself
    for (const resource of this.resources.all()) {
      const schema = resource.dynamic.get(anchor)
      if (schema !== undefined) checks.set(resource, this.check(schema, resource, place))
    }
    return checks
  }

  /** Those of its own that the dialect has, in the order in which they judge. */
  #keywordsOf(schema: SchemaObject): readonly (readonly [string, Keyword])[] {
    const { has, isOld } = this.dialect
    const isAlone = isOld && typeof schema['$ref'] === 'string'
    return Object.keys(schema)
      .filter((word) => has.has(word) && (!isAlone || word === '$ref'))
      .flatMap((word) => order.get(word) ?? [])
      .toSorted(([one], [other]) => one - other)
      .map(([, word, make]) => [word, make])
  }
}
