// Unknown value in, typed value with every default filled in out, or everything that is wrong with it.
import { readFileSync } from 'node:fs'
import { problemFrom, type Check, type Problem } from './problem.ts'
import type { Assertions, Config, Control, Declaration, Profile, Project } from './types.gen.ts'
import { checksOfFiles, checksOfParams } from './validators.gen.ts'

interface Kinds {
  readonly config: Config
  readonly project: Project
  readonly profile: Profile
  readonly declaration: Declaration
  readonly assertions: Assertions
}

/** A kind of file. */
export type Kind = keyof Kinds
/** A method of the control protocol. */
export type ControlMethod = keyof Control

export type Validated<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: readonly Problem[] }

/** Validates the content of a file. The value is copied; the copy has the schema's defaults. */
export function validate<K extends Kind>(kind: K, value: unknown): Validated<Kinds[K]> {
  return run<Kinds[K]>(kind, checksOfFiles[kind], structuredClone(value))
}

/**
 * Validates the parameters of a control method; a method without parameters takes `{}`. They are not copied: the schema has
 * no defaults that would be written into them.
 */
export function validateParams<M extends ControlMethod>(
  method: M,
  params: unknown,
): Validated<NonNullable<Control[M]>> {
  return run<NonNullable<Control[M]>>(method, checksOfParams[method], params)
}

/** Says whether the control protocol has the method, in this version. */
export function isControlMethod(method: string): method is ControlMethod {
  return Object.hasOwn(checksOfParams, method)
}

/** The schema of a kind of file, as it ships. */
export function schemaOf(kind: Kind | 'control'): Readonly<Record<string, unknown>> {
  let schema = schemas.get(kind)
  if (schema === undefined) {
    const text = readFileSync(new URL(`./${kind}.schema.json`, import.meta.url), 'utf8')
    schema = JSON.parse(text) as Record<string, unknown>
    schemas.set(kind, schema)
  }
  return schema
}

const schemas = new Map<string, Readonly<Record<string, unknown>>>()

/** Writes the defaults of the schema into the value. */
function run<T>(what: string, check: Check | undefined, value: unknown): Validated<T> {
  if (check === undefined) throw new Error(`there is no check of ${what}; run npm run build`)
  if (check(value)) return { ok: true, value: value as T }
  // A key's own error says it all; ajv adds a second one about the mapping that holds the key.
  const findings = (check.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames')
  return { ok: false, problems: findings.map((finding) => problemFrom(finding, value)) }
}
