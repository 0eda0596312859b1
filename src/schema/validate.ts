// The content of a file in, typed value with every default filled in out, or everything that is wrong with it.
import { readFileSync } from 'node:fs'
import { parseJson } from '../lib/parse-json.ts'
import { checked, type Validated } from './check.ts'
import { checksOfFiles } from './files.gen.ts'
import type { Assertions, Config, Declaration, Profile, Project } from './types.gen.ts'

interface Kinds {
  readonly config: Config
  readonly project: Project
  readonly profile: Profile
  readonly declaration: Declaration
  readonly assertions: Assertions
}

/** A kind of file. */
export type Kind = keyof Kinds

/** Validates the content of a file. The value is copied; the copy has the schema's defaults. */
export function validate<K extends Kind>(kind: K, value: unknown): Validated<Kinds[K]> {
  return checked<Kinds[K]>(kind, checksOfFiles[kind], structuredClone(value))
}

/** The schema of a kind of file, as it ships. */
export function schemaOf(kind: Kind | 'control'): Readonly<Record<string, unknown>> {
  let schema = schemas.get(kind)
  if (schema === undefined) {
    const text = readFileSync(new URL(`./${kind}.schema.json`, import.meta.url), 'utf8')
    schema = parseJson(text) as Record<string, unknown>
    schemas.set(kind, schema)
  }
  return schema
}

const schemas = new Map<string, Readonly<Record<string, unknown>>>()
