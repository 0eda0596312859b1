// A declaration file says nine fields of each tool, speaks of what its server was given, and is told where it does not.
import { chmod, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { declarationOf, formatDeclaration, loadDeclaration } from '../../src/config/declaration.ts'
import type { Declaration } from '../../src/schema/types.gen.ts'
import { linesOf, refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

const granted = { name: 'files', mounts: [{ target: '/data' }], egress: [], credentials: [] }
const tool: Declaration['tools'][string] = {
  version: '1',
  parameters: { type: 'object' },
  side_effects: ['read'],
  resource_scopes: ['/data/in', '/tmp'],
  credentials: [],
  output: null,
  idempotency: 'unknown',
  failure_modes: [],
}
const declaration: Declaration = { version: 1, server: 'files', tools: { read_file: tool } }

async function load(text: string, mode = 0o600) {
  await using dir = await tempDir()
  const path = `${dir.path}/files.yaml`
  await writeFile(path, text)
  await chmod(path, mode)
  return await loadDeclaration(path, [process.getuid?.() ?? 0], granted)
}

test('what was drafted is read back as it was, claims and all', async () => {
  const claims = { read_file: { side_effects: 'readOnlyHint: true\n\u202eevil' } }
  const text = formatDeclaration({ ...declaration, said_version: '2.0' }, claims)
  expect(text).toContain('readOnlyHint: true evil')
  expect(text).toContain('sallyport accept files --declaration')
  const read = await load(text)
  expect(read.declaration).toEqual({ ...declaration, said_version: '2.0' })
  expect(read.tools['read_file']).toMatchObject({ name: 'read_file', resourceScopes: ['/data/in', '/tmp'] })
})

test('what nobody sees in a server’s words stands in the draft as an escape, and is read back as it was', async () => {
  const hidden = [
    'a\u202eb',
    'c\u200bd',
    '\u2066e\u2069',
    'f\u007f\u0085',
    'g\u{e0041}',
    'h\u001b[31m',
    'i\ud800',
    'one\u2028two\n\tthree\u200b\n' + 'x'.repeat(200) + '\ny',
    '\ufeff',
    'j\rk',
  ]
  const properties = Object.fromEntries(
    hidden.map((text) => [text, { description: text, enum: [text, 'plain'] }]),
  )
  const parameters = { type: 'object', description: 'two\nlines\n', properties, required: hidden }
  const drafted = { ...declaration, tools: { read_file: { ...tool, parameters, output: parameters } } }
  const text = formatDeclaration(drafted, {})
  expect(text).not.toMatch(/(?!\n)[\p{C}\p{Zl}\p{Zp}\p{DI}]/u)
  expect(text).toContain('"a\\u202Eb"')
  expect((await load(text)).declaration).toEqual(drafted)
})

const without = (key: keyof typeof tool): object =>
  Object.fromEntries(Object.entries(tool).filter(([name]) => name !== key))

describe('a declaration is refused, with file and line,', () => {
  test.each(Object.keys(tool) as (keyof typeof tool)[])('that does not say %s', async (key) => {
    const text = JSON.stringify({ ...declaration, tools: { read_file: without(key) } }, null, 2)
    const lines = linesOf(await refusal(() => load(text)))
    expect(lines).toMatch(/files\.yaml:\d+:\d+: tools\.read_file/)
    expect(lines).toContain(key)
  })

  test.each([
    ['another server', { ...declaration, server: 'mail' }, /:3:\d+: server: got "mail", expected files/],
    [
      'a scope outside of the mounts',
      scoped('/etc'),
      /resource_scopes\[0\]: got "\/etc", expected a path below/,
    ],
    ['a scope beside a mount', scoped('/database'), /got "\/database", expected a path below \/tmp, \/data/],
    ['a scope that climbs out', scoped('/data/../etc'), /resource_scopes\[0\]: got "\/data\/\.\.\/etc"/],
    [
      'a side effect that is none',
      { ...declaration, tools: { t: { ...tool, side_effects: ['magic'] } } },
      /magic/,
    ],
    ['a key that is unknown', { ...declaration, tools: { t: { ...tool, permit: 'all' } } }, /permit/],
    ['another version of the format', { ...declaration, version: 2 }, /version: got 2, expected 1/],
    ['a tool name that could be no identity', { ...declaration, tools: { 'a b': tool } }, /a b/],
  ])('that names %s', async (_what, value, said) => {
    const lines = linesOf(await refusal(() => load(JSON.stringify(value, null, 2))))
    expect(lines).toMatch(said)
    expect(lines).toMatch(/files\.yaml:\d+:\d+/)
  })

  test('that says a tool twice', async () => {
    const text = `version: 1\nserver: files\ntools:\n  a: ${JSON.stringify(tool)}\n  a: ${JSON.stringify(tool)}\n`
    expect(linesOf(await refusal(() => load(text)))).toMatch(/files\.yaml:5:\d+/)
  })

  test('that others may write', async () => {
    expect((await refusal(() => load(JSON.stringify(declaration), 0o666))).code).toBe('ERR_CONFIG_UNSAFE')
  })
})

test('a declaration that never was a file is held to the same', () => {
  expect(() => declarationOf({ ...declaration, server: 'mail' }, granted)).toThrow(/expected files/)
  expect(Object.keys(declarationOf(declaration, granted).tools)).toEqual(['read_file'])
})

function scoped(scope: string): object {
  return { ...declaration, tools: { read_file: { ...tool, resource_scopes: [scope] } } }
}
