import { expect, test } from 'vitest'
import { gateOf } from '../../../src/call/gate.ts'
import {
  displayName,
  harmless,
  plain,
  prune,
  schemaView,
  viewTools,
  withoutCollisions,
} from '../../../src/supervisor/control/tool-view.ts'
import { allowAll } from '../../support/attach.ts'
import { serverOf } from '../../support/settings.ts'

test.each([
  ['<server>_<tool>', 'files', 'read', 'files_read'],
  ['mcp__<server>__<tool>', 'files', 'read', 'mcp__files__read'],
  ['<server>:<tool>', 'files', 'read', 'files:read'],
  ['<server>_<tool>', 'a.b', 'c d', 'a_b_c_d'],
] as const)('%s names %s and %s %s', (naming, server, tool, name) => {
  expect(displayName(server, tool, naming)).toBe(name)
})

test('a name is at most 64 characters, and two long ones stay two', () => {
  const [a, b] = ['x'.repeat(100), `${'x'.repeat(99)}y`].map((tool) =>
    displayName('s', tool, '<server>_<tool>'),
  )
  expect(a).toHaveLength(64)
  expect(a).not.toBe(b)
})

test('a name cannot smuggle the pattern of another', () => {
  expect(displayName('<tool>', 'x', '<server>_<tool>')).toBe('_tool__x')
  expect(displayName('a', '$&', '<server>_<tool>')).toBe('a___')
})

test('of two tools under one name neither is shown', () => {
  const view = (server: string, tool: string, name: string) => ({ server, tool, name }) as never
  const { tools, collisions } = withoutCollisions([
    view('a', 'b_c', 'a_b_c'),
    view('a_b', 'c', 'a_b_c'),
    view('x', 'y', 'x_y'),
  ])
  expect(tools.map(({ name }) => name)).toEqual(['x_y'])
  expect(collisions).toEqual(['a_b_c'])
})

test.each([
  ['t', null, false, true],
  ['t', 'no object', false, true],
  ['t', { readOnlyHint: 'yes', destructiveHint: 0 }, false, true],
  ['t', { readOnlyHint: true }, true, false],
  ['t', { destructiveHint: false }, false, false],
  ['vouched', null, true, false],
  ['vouched', { readOnlyHint: false }, false, true],
  ['vouched', { destructiveHint: true }, false, true],
])(
  'of %s with the annotations %j it is said: read-only %s, destructive %s',
  (tool, annotations, reads, harms) => {
    const server = serverOf({ tools: { allow: [], deny: [], readOnly: ['vouch*'] } })
    const listed = { tool, description: '', inputSchema: {}, annotations }
    const tools = { descriptionList: 200, descriptionFull: 2048, naming: '<server>_<tool>' }
    const settings = { tools } as never
    const gate = gateOf(allowAll)
    expect([...viewTools(server, [listed], { gate, governor: gate, settings }, 'list')]).toMatchObject([
      { read_only: reads, destructive: harms },
    ])
  },
)

test('descriptions lose what deceives a terminal or a reader', () => {
  expect(plain('a\u001b[31mred\u001b[0m\u202eb\u200b\nc', 200)).toBe('ared b c')
  expect(plain('a\u001b]0;title\u0007b\u001b]8;;http://x\u001b\\c\u009b1md\u009dno\u009ce', 200)).toBe(
    'abcde',
  )
  expect(plain('a\u001b]0;without end', 200)).toBe('a ]0;without end')
  for (const begins of [
    '\u001b[',
    '\u009b',
    '\u001b]',
    '\u001bP',
    '\u0090',
    '\u0098',
    '\u009d',
    '\u009e',
    '\u009f',
    '\u001b]\u009d',
    '\u009d\u009b0',
  ])
    expect(plain(`a${begins.repeat(300_000)}`, 9)).toMatch(/^a/) // in no time that grows with the square
  expect(plain('a\u{e0148}\u{e0155}b\ufe0fc\u3164d', 200)).toBe('a b c d')
  expect(plain('x'.repeat(300), 200)).toHaveLength(200)
})

test.each([plain, harmless])('no letter is cut in half, and no more is left than the limit', (clean) => {
  for (const limit of [0, 1, 2, 3, 4, 5]) {
    expect(clean('😀😀😀', limit).isWellFormed(), `${limit}`).toBe(true)
    expect(clean('😀😀😀', limit).length, `${limit}`).toBeLessThanOrEqual(limit)
  }
  expect(clean('a😀😀', 3)).toBe('a…')
})

test('annotations are claims: nothing in them is what nobody sees', () => {
  const annotations = {
    title: 'a\u202eb',
    note: 'c\u001b[31m\u200bd',
    of: [{ 'e\u2066': 'f\u202e' }],
    readOnlyHint: true,
  }
  const tools = { descriptionList: 200, descriptionFull: 2048, naming: '<server>_<tool>' }
  const [gate, settings] = [gateOf(allowAll), { tools } as never]
  const listed = { tool: 't', description: '', inputSchema: {}, annotations }
  const [view] = [...viewTools(serverOf({}), [listed], { gate, governor: gate, settings }, 'list')]
  expect(view?.annotations).toEqual({ title: 'a b', note: 'c d', of: [{ e: 'f' }], readOnlyHint: true })
})

const token = `ghp_${'a1B2'.repeat(9)}`

test.each([
  ['as it is', token],
  ['in two halves that a terminal shows as one', `${token.slice(0, 9)}\u001b[0m${token.slice(9)}`],
])('a description that holds a secret is withheld: %s', (_what, secret) => {
  expect(harmless(`Use ${secret}.`, 2048)).toBe('(withheld: it holds what looks like a GitHub token)')
})

test('a secret is taken out of a schema wherever it stands, and nothing else is', () => {
  const schema = {
    properties: { a: { type: 'string', default: token, enum: ['x\u200b', token], maximum: 1 }, [token]: {} },
  }
  const withheld = '(withheld: it holds what looks like a GitHub token)'
  expect(prune(schema, 10)).toEqual({
    properties: {
      a: { type: 'string', default: withheld, enum: ['x\u200b', withheld], maximum: 1 },
      [withheld]: {},
    },
  })
})

test('a schema is cleaned once, whoever shows it', () => {
  const schema = { properties: { a: { description: 'b\u200bc' } } }
  expect(schemaView(schema)).toEqual({ properties: { a: { description: 'b c' } } })
  expect(schemaView(schema)).toBe(schemaView(schema))
  expect([schemaView(true), schemaView(null)]).toEqual([true, null])
})

test('a tool is cleaned once, however often it is listed, in whatever length', () => {
  let reads = 0
  const listed = {
    tool: 't',
    get description() {
      reads += 1
      return 'x'.repeat(300)
    },
    inputSchema: { type: 'object', properties: { a: { description: 'b\u200bc' } } },
    annotations: { title: 'T' },
  }
  const gate = gateOf(allowAll)
  const tools = { descriptionList: 200, descriptionFull: 2048, naming: '<server>_<tool>' }
  const view = (length: 'list' | 'full') =>
    [...viewTools(serverOf({}), [listed], { gate, governor: gate, settings: { tools } as never }, length)][0]
  const [first, again] = [view('list'), view('full')]
  expect([first?.description.length, again?.description.length]).toEqual([200, 300])
  expect(again?.input_schema).toBe(first?.input_schema)
  expect(again?.annotations).toBe(first?.annotations)
  expect(reads).toBe(1)
})

test('of a schema all that is for readers is cleaned and cut, and what decides what is valid stays as it is', () => {
  const [hidden, shown] = ['a\u202eb\u001b[2J', 'a b']
  const long = 'x'.repeat(5000)
  const valid = { enum: [hidden], const: hidden, pattern: hidden }
  const named = (default_: unknown): object => ({ properties: { default: default_, examples: default_ } })
  const view = schemaView({
    ...named({ ...valid, default: hidden, format: hidden }),
    ...valid,
    default: { deep: [hidden] },
    examples: [hidden, long, 7],
  }) as Record<string, unknown>
  expect(view).toMatchObject({
    ...named({ ...valid, default: shown, format: shown }),
    ...valid,
    default: { deep: [shown] },
  })
  const [first, cut, number] = view['examples'] as [string, string, number]
  expect([first, number]).toEqual([shown, 7])
  expect(cut.length).toBeLessThanOrEqual(2048)
})
