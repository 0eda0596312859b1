// The schemas describe everything and allow nothing else; validation fills defaults in and leaves its input alone.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { problemFrom } from '../../src/schema/problem.ts'
import type { Validated } from '../../src/schema/check.ts'
import { type ControlMethod, isControlMethod, validateParams } from '../../src/schema/params.ts'
import { schemaOf, validate } from '../../src/schema/validate.ts'
import { likeSchema } from '../support/like-schema.ts'

type Node = Readonly<Record<string, unknown>>
const kinds = ['config', 'project', 'profile', 'control'] as const

interface Found {
  readonly place: string
  readonly node: Node
}

/** Every schema below a node, with where it is. */
function* schemas(node: unknown, place: string): Generator<Found> {
  if (typeof node !== 'object' || node === null) return
  if (Array.isArray(node)) return
  const schema = node as Node
  yield { place, node: schema }
  for (const key of ['properties', '$defs'])
    for (const [name, inner] of Object.entries({ ...(schema[key] as object | undefined) }))
      yield* schemas(inner, `${place}/${name}`)
  for (const key of ['items', 'additionalProperties', 'propertyNames'])
    yield* schemas(schema[key], `${place}/${key}`)
}

describe.each([...kinds, 'declaration', 'assertions'] as const)('the schema of %s', (kind) => {
  test('is a schema by the dialect’s own', () => {
    const ajv = new Ajv2020({ strict: false })
    expect(ajv.validateSchema(schemaOf(kind)), ajv.errorsText()).toBe(true)
  })
})

describe.each(kinds)('the schema of %s', (kind) => {
  const all = [...schemas(schemaOf(kind), kind)]
  const properties = all.flatMap(({ place, node }) =>
    Object.entries({ ...(node['properties'] as Record<string, Node> | undefined) }).map(
      ([name, property]) => ({
        place: `${place}/${name}`,
        property,
        required: ((node['required'] as string[] | undefined) ?? []).includes(name),
      }),
    ),
  )

  test('describes every property', () => {
    expect(properties.filter(({ property }) => !property['description']).map(({ place }) => place)).toEqual(
      [],
    )
  })

  test('allows no property that it does not know', () => {
    const open = all.filter(
      ({ node }) => [node['type']].flat().includes('object') && node['additionalProperties'] === undefined,
    )
    expect(open.map(({ place }) => place).filter((place) => !place.endsWith('/arguments'))).toEqual([])
  })

  test('gives every property of a file that may be left out a default', () => {
    if (kind === 'control') return
    const sources = ['/env', '/file', '/command'].map((name) => `config/credentialSource${name}`)
    const without = properties.filter(
      ({ property, required }) => !required && property['default'] === undefined,
    )
    expect(without.map(({ place }) => place).filter((place) => !sources.includes(place))).toEqual([])
  })
})

test('the generated types are those of the schemas', async () => {
  const script = fileURLToPath(new URL('../../.ci/schema-types.ts', import.meta.url))
  await promisify(execFile)(process.execPath, [script, '--check'])
})

describe('what was built of the schemas', () => {
  const files = ['config', 'project', 'profile', 'declaration', 'assertions'] as const
  const compilerOf = (allErrors: boolean): Ajv2020 => {
    const ajv = new Ajv2020({
      allErrors,
      verbose: true,
      useDefaults: true,
      allowUnionTypes: true,
      validateSchema: false,
    })
    ajv.addVocabulary(['expected', 'mend'])
    for (const kind of [...files, 'control'] as const) ajv.addSchema(schemaOf(kind))
    return ajv
  }
  const [ofAll, ofTheFirst] = [compilerOf(true), compilerOf(false)]

  /** What a part of a schema as it ships says of a value: the value with its defaults, or the problems. */
  const sayingOf = (reference: string, ajv = ofAll) => {
    const check = ajv.compile({ $ref: reference })
    return (value: unknown): unknown => said(check, value)
  }
  const said = (check: ValidateFunction, value: unknown): unknown => {
    const copy = structuredClone(value)
    if (check(copy)) return copy
    const findings = (check.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames')
    return findings.map((finding) => problemFrom(finding, copy))
  }
  const answerOf = (validated: Validated<unknown>): unknown =>
    validated.ok ? validated.value : validated.problems

  test.each(files)('%s: judges, fills in and explains like the schema that ships', (kind) => {
    const values = fc.sample(likeSchema(schemaOf(kind)), { numRuns: 400, seed: 1 })
    const answers = values.map((value) => validate(kind, value))
    expect(answers.map(answerOf)).toEqual(values.map(sayingOf(`${kind}.schema.json`)))
    expect(new Set(answers.map(({ ok }) => ok)).size, 'both accepted and refused').toBe(2)
  })

  test('parameters: judges and explains like the schema that ships', () => {
    const methods = schemaOf('control')['properties'] as Readonly<Record<ControlMethod, Node>>
    for (const method of Object.keys(methods) as ControlMethod[]) {
      const reference = `control.schema.json#/properties/${method.replaceAll('/', '~1')}`
      const saidOf = sayingOf(reference, ofTheFirst)
      const like = likeSchema(schemaOf('control'), methods[method])
      for (const params of fc.sample(like, { numRuns: 40, seed: 1 }))
        expect(answerOf(validateParams(method, params)), method).toEqual(saidOf(params))
    }
  })
})

test('of parameters the first thing that is wrong is told, however often they are', () => {
  const launch = { name: 'n', command: 'c', args: Array.from({ length: 1000 }, (_, n) => n) }
  const validated = validateParams('servers/launch', launch)
  expect(validated.ok ? [] : validated.problems).toMatchObject([{ path: 'args[0]' }])
})

test('defaults are filled in all the way down, in a copy', () => {
  const input = { version: 1, servers: { a: { command: 'node', stop: { eof_ms: 1 } } } }
  const before = structuredClone(input)
  const validated = validate('config', input)
  expect(input).toEqual(before)
  if (!validated.ok) throw new Error('refused')
  expect(validated.value.servers['a']?.stop).toEqual({ eof_ms: 1, term_ms: 3000 })
  expect(validated.value.servers['a']?.tools).toEqual({ allow: [], deny: [], read_only: [] })
  expect(validated.value.journal.durability).toBe('write')
})

test('one validation’s defaults are not another’s', () => {
  const [one, two] = [validate('config', { version: 1 }), validate('config', { version: 1 })]
  if (!one.ok || !two.ok) throw new Error('refused')
  one.value.command_path.push('/evil')
  one.value.tools.per_server = 7
  expect(two.value.command_path).toEqual(['/usr/local/bin', '/usr/bin'])
  expect(two.value.tools.per_server).toBe(100)
})

test('a key that JavaScript finds special is a key like others', () => {
  const servers: unknown = JSON.parse(
    '{"__proto__": {"command": "node"}, "constructor": {"command": "node"}}',
  )
  const validated = validate('config', { version: 1, servers })
  if (!validated.ok) throw new Error('refused')
  expect(Object.keys(validated.value.servers)).toEqual(['__proto__', 'constructor'])
  expect(({} as Record<string, unknown>)['command']).toBeUndefined()
  expect(validate('config', JSON.parse('{"version": 1, "__proto__": 1}')).ok).toBe(false)
})

test('a value where a secret may stand is named by its kind', () => {
  const validated = validate('config', {
    version: 1,
    servers: { a: { command: 'node', env: { PIN: 123_456 } } },
  })
  if (validated.ok) throw new Error('accepted')
  expect(validated.problems.map(({ got }) => got)).toEqual(['a number'])
})

describe('parameters of control methods', () => {
  test('the schema has exactly the methods of the protocol', async () => {
    const protocol = await readFile(new URL('../../src/rpc/protocol.ts', import.meta.url), 'utf8')
    const methods = protocol.slice(
      protocol.indexOf('interface HostMethods'),
      protocol.indexOf('interface Notifications'),
    )
    const names = [...methods.matchAll(/^ {2}'([a-z]+\/[a-z]+)': \{/gm)].map(([, name]) => name)
    expect(new Set(Object.keys(schemaOf('control')['properties'] as object))).toEqual(new Set(names))
  })

  test.each([
    ['servers/get', { server: 'files' }],
    ['tools/call', { server: 'files', tool: 'read_file', arguments: { anything: [1, null] }, timeout_ms: 5 }],
    ['servers/list', {}],
    ['session/result', { session: 's-abcdefghijklmnopqrstuv' }],
  ] as const)('%s takes what it takes', (method, params) => {
    expect(validateParams(method, params)).toEqual({ ok: true, value: params })
  })

  test('nothing is written into them, so that they need no copy', () => {
    expect(JSON.stringify(schemaOf('control'))).not.toContain('"default"')
    const params = Object.freeze({ server: 'files', tool: 'read', arguments: Object.freeze({}) })
    const validated = validateParams('tools/call', params)
    expect(validated.ok && validated.value).toBe(params)
  })

  test.each([
    ['servers/get', {}],
    ['servers/get', { server: '../x' }],
    ['servers/get', { server: 'x', extra: 1 }],
    ['servers/get', null],
    ['servers/get', []],
    ['tools/call', { server: 'x', tool: 'y', arguments: [] }],
    ['tools/call', { server: 'x', tool: 'y', timeout_ms: 0 }],
    ['sallyport/hello', { project: 'relative' }],
  ] as const)('%s refuses %j', (method, params) => {
    expect(validateParams(method, params).ok).toBe(false)
  })

  test('of keys that may come together, at least one is asked for', () => {
    const validated = validateParams('servers/hold', {})
    const expected = validated.ok ? [] : validated.problems.map((problem) => problem.expected)
    expect(expected).toEqual(['at least 1 of name, server, tool, lineage, reason'])
  })

  test('a name that objects have by birth is no method', () => {
    expect(isControlMethod('constructor')).toBe(false)
    expect(isControlMethod('servers/get')).toBe(true)
  })
})

test('a number or a truth value where a text is expected is to be quoted', () => {
  for (const version of [1, true]) {
    const config = { version: 1, servers: { files: { command: 'node', version } } }
    const found = validate('config', config)
    const problem = found.ok ? null : found.problems.find(({ path }) => path === 'servers.files.version')
    expect(problem?.mend).toBe('write it in quotes')
  }
})

test('a kind that there is no check of is named, with what makes one', () => {
  expect(() => validate('nonsense' as 'config', {})).toThrow(/no check of nonsense; run npm run build/)
})

test.each(['-rf', '--help', '-'])(
  'no server gets the name %s, which a command line takes for an option',
  (name) => {
    expect(validateParams('servers/launch', { name, command: 'node' }).ok).toBe(false)
    expect(validateParams('servers/add', { server: name, entry: {} }).ok).toBe(false)
    // One that has it from before is found, and can be removed.
    expect(validateParams('servers/remove', { server: name }).ok).toBe(true)
    expect(validateParams('servers/launch', { name: `a${name}`, command: 'node' }).ok).toBe(true)
  },
)
