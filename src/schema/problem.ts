// One thing that is wrong with a value: where, what was found, what would be right, and how to mend it.
import { nearest } from '../lib/nearest.ts'

export type Step = string | number

export interface Problem {
  readonly kind: 'unknown-key' | 'missing' | 'value'
  /** Steps from the top of the document to the place */
  readonly at: readonly Step[]
  /** `servers.files.mounts[0].source` */
  readonly path: string
  readonly got: string
  readonly expected: string
  readonly mend: string | null
}

/** The part of a validator's finding that a problem is made of. */
export interface Finding {
  readonly instancePath: string
  readonly keyword: string
  readonly params: Readonly<Record<string, unknown>>
  readonly propertyName?: string
  readonly parentSchema?: object
  readonly data?: unknown
}

/** A schema that was compiled: says whether a value fits, and keeps what it found until it is asked again. */
export interface Check {
  (value: unknown): boolean
  readonly errors?: readonly Finding[] | null
}

/** Writes steps as people read them: `servers.files.mounts[0].source`; odd keys are quoted. */
export function formatPath(at: readonly Step[]): string {
  return at
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`
      if (!/^[A-Za-z0-9_$-]+$/.test(step)) return `[${quote(step)}]`
      return index === 0 ? step : `.${step}`
    })
    .join('')
}

/** Says what a value is, in a few words; a value that may be a secret is named by its kind alone. */
export function describe(value: unknown, isSecret = false): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a mapping'
  if (isSecret) return `a ${typeof value}`
  const text = typeof value === 'number' ? String(value) : quote(value)
  return text.length > 80 ? `${text.slice(0, 76)}…${typeof value === 'string' ? '"' : ''}` : text
}

/** JSON in which nothing can steer a terminal or hide: no C1 controls, no format characters. */
const quote = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\u009f\p{Cf}\u2028\u2029]/gu,
    (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`,
  )

/** Turns a validator's finding about a document into a problem. */
export function problemFrom(finding: Finding, root: unknown): Problem {
  const schema: Readonly<Record<string, unknown>> = { ...finding.parentSchema }
  const parent = steps(finding.instancePath, root)
  const { key, kind } = keyOf(finding)
  const at = key === null ? parent : [...parent, key]
  const got = gotFor(finding, kind, key, at)
  const expected = expectedFor(finding, schema, kind, key)
  return { kind, at, path: formatPath(at), got, expected, mend: mendFor(finding, schema, kind, key) }
}

/** The key that a finding is about, where it is about a key and not about a value. */
function keyOf({ keyword, params, propertyName }: Finding): { key: string | null; kind: Problem['kind'] } {
  if (propertyName !== undefined) return { key: propertyName, kind: 'unknown-key' }
  if (keyword === 'additionalProperties')
    return { key: String(params['additionalProperty']), kind: 'unknown-key' }
  if (keyword === 'required') return { key: String(params['missingProperty']), kind: 'missing' }
  return { key: null, kind: 'value' }
}

function gotFor(finding: Finding, kind: Problem['kind'], key: string | null, at: readonly Step[]): string {
  if (kind === 'missing') return 'nothing'
  if (kind === 'unknown-key') return `the key ${quote(key)}`
  return describe(finding.data, mayBeSecret(at))
}

const mayBeSecret = (at: readonly Step[]): boolean =>
  at.some((step) => step === 'env' || step === 'set' || step === 'credentials' || step === 'arguments')

function expectedFor(
  { keyword, params, propertyName }: Finding,
  schema: Readonly<Record<string, unknown>>,
  kind: Problem['kind'],
  key: string | null,
): string {
  if (kind === 'missing') return `${key}${explain(schema, key)}`
  if (kind === 'unknown-key' && propertyName === undefined)
    return `one of ${keysOf(schema).join(', ') || 'no keys'}`
  const limit = String(params['limit'])
  if (typeof schema['expected'] === 'string')
    return keyword === 'maxLength'
      ? `${schema['expected']}, of at most ${limit} characters`
      : schema['expected']
  switch (keyword) {
    case 'type':
      return [params['type']].flat().map(String).map(typeName).join(' or ')
    case 'enum':
      return `one of ${listOf(params['allowedValues']).map(String).join(', ')}`
    case 'const':
      return JSON.stringify(params['allowedValue'])
    case 'minimum':
      return `at least ${limit}`
    case 'maximum':
      return `at most ${limit}`
    case 'minLength':
    case 'maxLength':
      return `${keyword === 'minLength' ? 'at least' : 'at most'} ${limit} characters`
    case 'minItems':
    case 'maxItems':
      return `${keyword === 'minItems' ? 'at least' : 'at most'} ${limit} items`
    case 'minProperties':
    case 'maxProperties':
      return keysWanted(keyword, limit, schema)
    case 'uniqueItems':
      return 'no item twice'
    default:
      return `what the schema says (${keyword})`
  }
}

/** How many keys there must be, of those that there may be. */
function keysWanted(keyword: string, limit: string, schema: Readonly<Record<string, unknown>>): string {
  const keys = keysOf(schema).join(', ')
  if (schema['minProperties'] === 1 && schema['maxProperties'] === 1) return `exactly one of ${keys}`
  return keyword === 'minProperties' ? `at least ${limit} of ${keys}` : `at most ${limit} keys`
}

function mendFor(
  { params, data }: Finding,
  schema: Readonly<Record<string, unknown>>,
  kind: Problem['kind'],
  key: string | null,
): string | null {
  if (kind === 'unknown-key' && key !== null) return suggestion(nearest(key, keysOf(schema)))
  if (kind === 'value' && typeof schema['mend'] === 'string') return schema['mend']
  // YAML takes 1.0 and true for something else than what is written
  if (
    kind === 'value' &&
    schema['type'] === 'string' &&
    (typeof data === 'number' || typeof data === 'boolean')
  )
    return 'write it in quotes'
  if (kind === 'value' && typeof data === 'string' && Array.isArray(params['allowedValues']))
    return suggestion(
      nearest(
        data,
        params['allowedValues'].filter((value) => typeof value === 'string'),
      ),
    )
  return null
}

const suggestion = (word: string | null): string | null => (word === null ? null : `did you mean ${word}?`)

const typeName = (type: string): string =>
  ({
    object: 'a mapping',
    array: 'a list',
    integer: 'a whole number',
    boolean: 'true or false',
    null: 'null',
  })[type] ?? `a ${type}`

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const keysOf = (schema: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.keys({ ...(schema['properties'] as object | undefined) })

/** The property's own words, for somebody who left it out. */
function explain(schema: Readonly<Record<string, unknown>>, key: string | null): string {
  const properties: Readonly<Record<string, unknown>> = { ...(schema['properties'] as object | undefined) }
  const property: Readonly<Record<string, unknown>> = { ...(properties[key ?? ''] as object | undefined) }
  const words = property['expected'] ?? property['description']
  return typeof words === 'string' ? ` (${words.charAt(0).toLowerCase()}${words.slice(1)})` : ''
}

/** `/servers/files/mounts/0` -> steps through the document; numbers are places in lists, not keys that look alike. */
function steps(pointer: string, root: unknown): readonly Step[] {
  const parts = pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  let node = root
  return parts.map((part) => {
    const step = Array.isArray(node) ? Number(part) : part
    node = typeof node === 'object' && node !== null ? (node as Record<Step, unknown>)[step] : undefined
    return step
  })
}
