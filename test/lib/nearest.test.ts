// Suggestions for slips of the pen, and silence where nothing is near.
import { expect, test } from 'vitest'
import { nearest } from '../../src/lib/nearest.ts'

const known = ['servers', 'startup', 'mode', 'allowed_commands', 'env']

test.each([
  ['severs', 'servers'],
  ['srevers', 'servers'],
  ['SERVERS', 'servers'],
  ['mcpServers', 'servers'],
  ['allowed_command', 'allowed_commands'],
  ['modes', 'mode'],
])('%s is taken for %s', (word, meant) => {
  expect(nearest(word, known)).toBe(meant)
})

test.each(['zzz', 'x', '', 'completely-different'])('nothing is suggested for %j', (word) => {
  expect(nearest(word, known)).toBeNull()
})

test('a word of a million letters is answered at once', () => {
  expect(nearest('a'.repeat(1_000_000), known)).toBeNull()
})
