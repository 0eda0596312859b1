import { expect, test } from 'vitest'
import { displayName, plain, withoutCollisions } from '../../src/supervisor/tool-view.ts'

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

test('descriptions lose what deceives a terminal or a reader', () => {
  expect(plain('a\u001b[31mred\u001b[0m\u202eb\u200b\nc', 200)).toBe('ared b c')
  expect(plain('x'.repeat(300), 200)).toHaveLength(200)
})
