// The dialects of JSON Schema that arguments are judged in: which words each of them has, and where in a schema others stand.
import { Unusable } from './unusable.ts'

/** A schema that is no boolean. */
export type SchemaObject = Readonly<Record<string, unknown>>

/** What one dialect says otherwise than its neighbours. */
export interface Dialect {
  readonly name: string
  /** Its keywords; what is not among them is a note */
  readonly has: ReadonlySet<string>
  /** The keyword that names a schema */
  readonly id: '$id' | 'id'
  /** Whether a schema's name may be a fragment, which names no resource, and whether `$ref` hides all that stands beside it */
  readonly isOld: boolean
  /** Whether items that `contains` matched count as looked at */
  readonly containsLooks: boolean
}

const words = (text: string): readonly string[] => text.split(' ')

const first = words(
  '$ref type enum allOf anyOf oneOf not properties patternProperties additionalProperties dependencies items ' +
    'additionalItems required minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength ' +
    'pattern minItems maxItems uniqueItems minProperties maxProperties',
)
const of6 = [...first, ...words('const contains propertyNames')]
const of7 = [...of6, ...words('if then else')]
const of2019 = [
  ...of7,
  ...words('$anchor $recursiveRef $recursiveAnchor minContains maxContains dependentRequired'),
  ...words('dependentSchemas unevaluatedItems unevaluatedProperties'),
]
const gone = new Set(words('additionalItems $recursiveRef $recursiveAnchor'))
const of2020 = [
  ...of2019.filter((word) => !gone.has(word)),
  ...words('prefixItems $dynamicRef $dynamicAnchor'),
]

const dialect = (name: string, has: readonly string[], rest: Partial<Dialect> = {}): Dialect => ({
  name,
  has: new Set(has),
  id: '$id',
  isOld: false,
  containsLooks: false,
  ...rest,
})

const latest = dialect('2020-12', of2020, { containsLooks: true })
const dialects: readonly (readonly [RegExp, Dialect])[] = [
  [/^https?:\/\/json-schema\.org\/(?:draft\/2020-12\/)?schema#?$/, latest],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, dialect('2019-09', of2019)],
  [/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/, dialect('draft-07', of7, { isOld: true })],
  [/^https?:\/\/json-schema\.org\/draft-06\/schema#?$/, dialect('draft-06', of6, { isOld: true })],
  [
    /^https?:\/\/json-schema\.org\/draft-04\/schema#?$/,
    dialect('draft-04', first, { isOld: true, id: 'id' }),
  ],
]

/**
 * The dialect that a schema names, or 2020-12 where it names none.
 *
 * @throws Unusable for one that is not known here: what its words mean is then anybody's guess
 */
export function dialectOf(schema: unknown): Dialect {
  const said = isObject(schema) ? schema['$schema'] : undefined
  const known = said === undefined ? latest : named(said)
  if (known !== undefined) return known
  throw new Unusable('#/$schema', said, `one of ${dialects.map(([, { name }]) => name).join(', ')}`)
}

/** Whether a `$schema` names a dialect that is known here and has all plain words: `const` is none of draft-04's. */
export const hasPlainWords = (said: unknown): boolean => named(said)?.has.has('const') === true

const named = (said: unknown): Dialect | undefined =>
  typeof said === 'string' ? dialects.find(([address]) => address.test(said))?.[1] : undefined

const single = new Set(
  words(
    'not if then else additionalProperties propertyNames contains items additionalItems unevaluatedItems ' +
      'unevaluatedProperties contentSchema',
  ),
)
const lists = new Set(words('allOf anyOf oneOf prefixItems items'))
const maps = new Set(words('properties patternProperties $defs definitions dependentSchemas dependencies'))

/** What of a schema stands where a schema may stand, whichever dialect it is in: names are looked for there, and nowhere else. */
export function* schemasIn(schema: SchemaObject): Generator {
  for (const [word, said] of Object.entries(schema))
    if (lists.has(word) && Array.isArray(said)) yield* said as unknown[]
    else if (single.has(word)) yield said
    else if (maps.has(word) && isObject(said)) yield* Object.values(said)
}

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is SchemaObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
