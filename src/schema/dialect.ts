// What a schema says to its dialect, without what it would say to our validator alone.

/** Keywords whose members are schemas, by names that may be anything */
const named = new Set(
  'properties patternProperties $defs definitions dependentSchemas dependencies'.split(' '),
)
/** Keywords whose value is no schema and holds none */
const values = new Set('enum const default examples'.split(' '))

/**
 * A copy without the validator's own keywords, which are words like any other to every dialect: `$async`, with which it
 * answers with a promise instead of a verdict; `id`, at which it gives up; and `nullable` wherever it would give up at that.
 */
export function inDialect(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(inDialect)
  if (!isObject(schema)) return schema
  const said = Object.entries(schema).filter(([keyword, value]) => !isOurs(keyword, value, schema))
  return Object.fromEntries(said.map(([keyword, value]) => [keyword, below(keyword, value)]))
}

function below(keyword: string, value: unknown): unknown {
  if (values.has(keyword)) return value
  if (!named.has(keyword) || !isObject(value)) return inDialect(value)
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inDialect(one)]))
}

function isOurs(keyword: string, value: unknown, { type }: Readonly<Record<string, unknown>>): boolean {
  if (keyword === '$async') return true
  if (keyword === 'id') return typeof value === 'string'
  return keyword === 'nullable' && (value !== true || type === undefined)
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
