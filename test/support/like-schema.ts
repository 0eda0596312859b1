// Values that a schema of ours mostly accepts, wrong here and there: what its check is asked to judge and to explain.
import fc from 'fast-check'

type Node = Readonly<Record<string, unknown>>

const texts = ['a', 'aa', '/a', '-a', 'A_B', '10.0.0.0', 'example.com:443', 'mcp:a:*', 'calls/read', '']
const digest = '0'.repeat(64)
const candidates = [...texts, digest, `sha256:${digest}`]
const names = ['a', 'A', 'b-c', '/a', '__proto__', 'constructor', 'sallyport', '..']
/** Nothing that a schema asks for; some of it is right where anything is. */
const wrong = fc.constantFrom<unknown>(null, true, -1, 1.5, 1e300, '', 'x\0', 'nothing', [], {}, [[]], {
  a: 1,
})

/** Values of the shape of a part of a schema; about one place in thirty is wrong, or has a member too many. */
export function likeSchema(schema: Node, part: Node = schema): fc.Arbitrary<unknown> {
  return valueOf(part, { ...(schema['$defs'] as object | undefined) })
}

function valueOf(node: Node, definitions: Readonly<Record<string, unknown>>): fc.Arbitrary<unknown> {
  if (typeof node['$ref'] === 'string')
    return valueOf(definitions[node['$ref'].replace('#/$defs/', '')] as Node, definitions)
  if ('const' in node) return mostly(fc.constant(node['const']))
  if (Array.isArray(node['enum'])) return mostly(fc.constantFrom<unknown>(...(node['enum'] as unknown[])))
  const types = [node['type']].flat().map(String)
  return mostly(fc.oneof(...types.map((type) => typed(type, node, definitions))))
}

const mostly = (right: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary: right, weight: 30 }, { arbitrary: wrong, weight: 1 })

function typed(
  type: string,
  node: Node,
  definitions: Readonly<Record<string, unknown>>,
): fc.Arbitrary<unknown> {
  if (type === 'boolean') return fc.boolean()
  if (type === 'integer' || type === 'number') return numberOf(node)
  if (type === 'string') return textOf(node)
  if (type === 'array')
    return fc.array(valueOf(node['items'] as Node, definitions), {
      minLength: Number(node['minItems'] ?? 0),
      maxLength: 3,
    })
  return type === 'object' ? mappingOf(node, definitions) : fc.constant(null)
}

function numberOf({ minimum = 0, maximum = 1000 }: Node): fc.Arbitrary<unknown> {
  return fc.constantFrom(Number(minimum), Math.min(Number(minimum) + 1, Number(maximum)), Number(maximum))
}

function textOf({ pattern = '', minLength = 0 }: Node): fc.Arbitrary<unknown> {
  const shape = new RegExp(String(pattern), 'u')
  const fitting = candidates.filter((text) => shape.test(text) && text.length >= Number(minLength))
  return fc.constantFrom(...(fitting.length > 0 ? fitting : texts))
}

function mappingOf(node: Node, definitions: Readonly<Record<string, unknown>>): fc.Arbitrary<unknown> {
  const properties = Object.entries({ ...(node['properties'] as Readonly<Record<string, Node>> | undefined) })
  const requiredKeys = ((node['required'] as string[] | undefined) ?? []).slice()
  const known = fc.record(
    Object.fromEntries(properties.map(([name, property]) => [name, valueOf(property, definitions)])),
    { requiredKeys },
  )
  const { additionalProperties: others } = node
  const more =
    typeof others === 'object' && others !== null
      ? fc.dictionary(fc.constantFrom(...names), valueOf(others as Node, definitions), { maxKeys: 2 })
      : fc.oneof({ arbitrary: fc.constant({}), weight: 30 }, fc.constant({ nonsense: 1 }))
  const whole = fc.tuple(known, more).map(([one, other]) => Object.assign(one, other))
  const [missing] = requiredKeys
  if (missing === undefined) return whole
  const without = whole.map((value) => {
    const rest: Record<string, unknown> = { ...value }
    delete rest[missing]
    return rest
  })
  return fc.oneof({ arbitrary: whole, weight: 30 }, without)
}
