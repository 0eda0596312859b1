// A keyword as it is met in a schema, and what makes checks of what stands below it.
import type { Dialect, SchemaObject } from './dialects.ts'
import type { Resource, Resources } from './resources.ts'
import type { Seen } from './seen.ts'
import type { Check } from './turn.ts'

/** What compiles the schema that a keyword stands in. */
export interface Compiling {
  readonly dialect: Dialect
  readonly resources: Resources
  /** The check of a schema anywhere in the document; `outer` is the resource that it is part of. @throws Unusable */
  check(schema: unknown, outer: Resource, place: string): Check
  /** What a dynamic reference to a name may lead to, by the resource that has the name. @throws Unusable */
  dynamic(anchor: string, place: string): ReadonlyMap<Resource, Check>
  /** Says that some schema asks what others looked at. */
  looksBack(): void
  /** What was looked at of a value that nothing has looked at. */
  anew(): Seen | null
}

/** A keyword as it stands in a schema. */
export interface Said {
  readonly word: string
  readonly said: unknown
  readonly schema: SchemaObject
  readonly resource: Resource
  /** Pointer to the keyword */
  readonly place: string
  readonly compiler: Compiling
  /** The check of a schema that stands below the keyword */
  readonly below: (schema: unknown, ...steps: readonly (string | number)[]) => Check
}

/** Makes a check of what a keyword says; null where it says nothing. @throws Unusable */
export type Keyword = (said: Said) => Check | null
