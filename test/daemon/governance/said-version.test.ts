// A declaration's version: what is accepted on the operator's standing word later, too, is of what says that, to the letter.
import { expect, test } from 'vitest'
import { isOf, readable } from '../../../src/daemon/governance/said-version.ts'
import { newInstanceId } from '../../../src/lib/ids.ts'
import { governed } from '../../support/governance.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { tempDir } from '../../support/temp-dir.ts'

const listed = (...names: readonly string[]) =>
  new Map(names.map((name) => [name, { name, inputSchema: { type: 'object' } }]))

test.each([
  ['2.0', ['a', 'b']],
  ['9.9', ['a']],
])('of a dynamic surface that says it is %s, what comes later is accepted: %j', async (said, accepted) => {
  await using dir = await tempDir()
  const entry = serverSettings('echo.mjs', { name: 's', surface: 'dynamic', acceptance: 'first-use' })
  await using all = await governed({ servers: [entry], rules: [], emit: () => undefined, state: dir.path })
  const { governor } = all.policy
  const seen = { server: entry, instance: newInstanceId(), saidVersion: said, rest: {} }
  await governor.observe({ ...seen, tools: listed('a') })
  const server = { ...entry, declaredVersion: '2.0' }
  await governor.observe({ ...seen, server, tools: listed('a', 'b') })
  expect([...(all.governance.ledger.accepted('s')?.tools.keys() ?? [])]).toEqual(accepted)
})

test.each(['1.0\u200b', '1.0\u001b[2J', '\n1.0 '])('%j is not what reads like it', (said) => {
  expect(isOf('1.0', said)).toBe(false)
  expect(readable(said)).toMatch(/^sha256:[0-9a-f]{64}$/)
  expect(isOf(readable(said), said)).toBe(true)
})
