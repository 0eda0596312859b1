// The names in a schema, and what a reference leads to. Nothing is fetched: what a schema does not bring along is not there.
import { type Dialect, dialectOf, isObject, schemasIn, type SchemaObject } from './dialects.ts'
import { Unusable } from './unusable.ts'

/** A schema with an address of its own, and the names in it. */
export interface Resource {
  readonly address: string
  readonly root: unknown
  readonly anchors: Map<string, SchemaObject>
  /** Those of the anchors that a dynamic reference may find in another resource's place */
  readonly dynamic: Map<string, SchemaObject>
}

/** What a reference leads to. */
export interface Target {
  readonly schema: unknown
  /** The resource that it is part of */
  readonly resource: Resource
  /** The dynamic anchor that the reference named it by */
  readonly anchor: string | null
}

/** The address of a schema that names none */
const nowhere = 'schema:/'

/** All resources of one schema. */
export class Resources {
  readonly #dialect: Dialect
  readonly #byAddress = new Map<string, Resource>()
  readonly #of = new Map<SchemaObject, Resource>()
  /** The resource that the schema as a whole is */
  readonly root: Resource

  /** @throws Unusable where names are no names, or stand for two schemas */
  constructor(schema: unknown, dialect: Dialect) {
    this.#dialect = dialect
    const outside = made(nowhere, schema)
    this.#byAddress.set(nowhere, outside)
    this.#enter(schema, outside)
    this.root = isObject(schema) ? (this.#of.get(schema) ?? outside) : outside
  }

  /**
   * The resource that a schema is part of; where none was expected to stand, that of what led there.
   *
   * @throws Unusable where it has a name there: some readers know it by that, and others don't
   */
  of(schema: SchemaObject, outer: Resource, place: string): Resource {
    const known = this.#of.get(schema)
    if (known !== undefined) return known
    const { id, has, isOld } = this.#dialect
    const isHidden = isOld && typeof schema['$ref'] === 'string'
    for (const word of [id, '$anchor', '$dynamicAnchor'])
      if (typeof schema[word] === 'string' && !isHidden && (word === id || has.has(word)))
        throw new Unusable(`${place}/${word}`, schema[word], 'no name where no schema is expected')
    return outer
  }

  /** Every resource, the outermost first. */
  all(): Iterable<Resource> {
    return this.#byAddress.values()
  }

  /** @throws Unusable where the reference leads to nothing that the schema brings along */
  find(reference: string, from: Resource, place: string): Target {
    const [address, fragment] = this.#split(reference, from, place)
    const resource = this.#byAddress.get(address)
    if (resource === undefined) throw new Unusable(place, reference, outOf)
    const name = decodeURIComponent(fragment)
    if (name === '') return { schema: resource.root, resource, anchor: null }
    if (name.startsWith('/')) return { ...this.#pointed(name, resource, place), anchor: null }
    const schema = resource.anchors.get(name)
    if (schema === undefined) throw new Unusable(place, reference, outOf)
    return { schema, resource, anchor: resource.dynamic.get(name) === schema ? name : null }
  }

  #pointed(pointer: string, from: Resource, place: string): Omit<Target, 'anchor'> {
    let [schema, resource]: [unknown, Resource] = [from.root, from]
    for (const step of pointer.slice(1).split('/')) {
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
      if (typeof schema !== 'object' || schema === null || !Object.hasOwn(schema, key))
        throw new Unusable(place, `#${pointer}`, outOf)
      schema = (schema as SchemaObject)[key]
      if (isObject(schema)) resource = this.#of.get(schema) ?? resource
    }
    return { schema, resource }
  }

  #enter(schema: unknown, outer: Resource): void {
    if (!isObject(schema)) return
    const resource = this.#named(schema, outer)
    this.#of.set(schema, resource)
    for (const inner of schemasIn(schema)) this.#enter(inner, resource)
  }

  /** The resource that begins at a schema, or that it is part of, with the schema's names noted there. */
  #named(schema: SchemaObject, outer: Resource): Resource {
    const { isOld, has } = this.#dialect
    if (schema !== outer.root && schema['$schema'] !== undefined) this.#expectSame(schema)
    if (isOld && typeof schema['$ref'] === 'string') return outer
    const id = this.#text(schema, this.#dialect.id)
    const isFragment = isOld && id?.startsWith('#') === true
    const resource = id === null || isFragment ? outer : this.#begin(id, schema, outer)
    if (isFragment && id !== null && id !== '#') note(resource.anchors, id.slice(1), schema)
    for (const word of ['$anchor', '$dynamicAnchor'] as const) {
      const name = has.has(word) ? this.#text(schema, word) : null
      if (name === null) continue
      note(resource.anchors, name, schema)
      if (word === '$dynamicAnchor') resource.dynamic.set(name, schema)
    }
    // A recursive anchor is a dynamic one without a name, and only a whole resource can have it.
    if (has.has('$recursiveAnchor') && schema['$recursiveAnchor'] === true && schema === resource.root)
      resource.dynamic.set('', schema)
    return resource
  }

  #begin(id: string, schema: SchemaObject, outer: Resource): Resource {
    const [address, fragment] = this.#split(id, outer, this.#dialect.id)
    if (fragment !== '') throw new Unusable(this.#dialect.id, id, 'an address without a fragment')
    if (this.#byAddress.has(address) && schema !== outer.root)
      throw new Unusable(this.#dialect.id, id, 'an address of its own: it stands twice')
    const resource = made(address, schema)
    this.#byAddress.set(address, resource)
    return resource
  }

  #expectSame(schema: SchemaObject): void {
    const { name } = dialectOf(schema)
    if (name !== this.#dialect.name)
      throw new Unusable('$schema', schema['$schema'], `${this.#dialect.name}, as the schema around it`)
  }

  #text(schema: SchemaObject, word: string): string | null {
    const said = schema[word]
    if (said === undefined) return null
    if (typeof said !== 'string') throw new Unusable(word, said, 'text')
    return said
  }

  #split(reference: string, { address }: Resource, place: string): [string, string] {
    if (!isReadAlike(reference) || !URL.canParse(reference, address))
      throw new Unusable(place, reference, 'a reference')
    const { href, hash } = new URL(reference, address)
    return [hash === '' ? href.replace(/#$/, '') : href.slice(0, -hash.length), hash.slice(1)]
  }
}

/** Whether nothing is in it that only some readers leave out, cut off or replace: a tab, a space at an end, half a letter */
const isReadAlike = (reference: string): boolean =>
  reference.isWellFormed() && !/\p{Cc}|^ | $|#.*#/u.test(reference)

const outOf = 'a part of the schema itself: nothing is fetched'

const made = (address: string, root: unknown): Resource => ({
  address,
  root,
  anchors: new Map(),
  dynamic: new Map(),
})

function note(anchors: Map<string, SchemaObject>, name: string, schema: SchemaObject): void {
  if (anchors.has(name)) throw new Unusable('$anchor', name, 'a name of its own: it stands twice')
  anchors.set(name, schema)
}
