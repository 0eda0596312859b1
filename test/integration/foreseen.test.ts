// What is said of a call beforehand goes by what its server lists now, and by what would run: not by what was accepted once.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { watching, yes } from '../support/watching.ts'
import { witness } from '../support/witness.ts'

const call = (client: Client, server: string, tool: string) =>
  client
    .call('tools/call', { server, tool, arguments: tool === 'change' ? { list: 'tools', patch: {} } : {} })
    .then(
      () => 'sent',
      ({ code }: { code: string }) => code,
    )

async function said(client: Client, server: string, tool: string) {
  const { outcome, steps, identity } = await client.call('policy/explain', { server, tool })
  const { verdict, detail } = steps.find(({ step }) => step === 'acceptance') ?? {}
  return { outcome, verdict, detail, identity }
}

test('a tool that its server lists otherwise by now would be refused, and stands halted', async () => {
  await using at = await daemon(configOf({ pull: fixture('rug-pull', { surface: 'dynamic' }) }))
  expect(await call(at.client, 'pull', 'echo')).toBe('sent')
  expect(await said(at.client, 'pull', 'echo')).toMatchObject({ outcome: 'sent' })
  expect(await call(at.client, 'pull', 'poison')).toBe('sent')
  expect(await call(at.client, 'pull', 'echo')).toBe('ERR_DECLARATION_MISMATCH')
  const detail = expect.stringContaining('lists echo otherwise than when it was accepted')
  expect(await said(at.client, 'pull', 'echo')).toEqual({
    outcome: 'refused',
    verdict: 'refuse',
    detail,
    identity: null,
  })
  const { halted } = await at.client.call('tools/describe', { server: 'pull', tool: 'echo' })
  expect(halted).toEqual(detail)
  expect((await at.run(['explain', 'pull', 'echo'])).status).toBe(2)
  // Its next process lists what was accepted.
  await at.client.call('servers/stop', { server: 'pull' })
  expect(await said(at.client, 'pull', 'echo')).toMatchObject({ outcome: 'sent' })
  expect(await call(at.client, 'pull', 'echo')).toBe('sent')
})

test('what a server has said to have changed is compared before it is said what would come of a call', async () => {
  await using at = await daemon(configOf({ pull: fixture('rug-pull', { surface: 'dynamic' }) }))
  expect(await call(at.client, 'pull', 'poison')).toBe('sent')
  expect(await said(at.client, 'pull', 'echo')).toMatchObject({
    outcome: 'refused',
    detail: expect.stringContaining('lists echo otherwise than when it was accepted'),
  })
})

test('nothing is said to be sent to a server that says without end that its lists have changed', async () => {
  await using seen = await witness()
  const entry = {
    args: ['/app/changes.mjs', '/seen/said'],
    profile: 'workspace-write',
    mounts: [seen.mount],
    timeouts: { initialize_ms: 3000 },
  }
  await using at = await daemon(configOf({ restless: fixture('changes', entry) }))
  await at.client.call('servers/start', { server: 'restless' })
  writeFileSync(join(seen.source, 'said.restless'), '')
  expect(await call(at.client, 'restless', 'change')).toBe('sent')
  expect(await said(at.client, 'restless', 'echo')).toMatchObject({
    outcome: 'refused',
    verdict: 'refuse',
    detail: expect.stringContaining('its lists have changed'),
  })
})

test('a call to another version than was accepted would be refused, before that runs and after', async () => {
  const entry = fixture('echo', { version: '1' })
  await using at = await daemon(configOf({ plain: entry }))
  expect(await call(at.client, 'plain', 'echo')).toBe('sent')
  writeFileSync(at.config, readFileSync(at.config, 'utf8').replace('"version":"1"', '"version":"2"'))
  await at.client.call('daemon/reload', {})
  const replaced = { outcome: 'refused', detail: expect.stringContaining('plain is version 2') }
  expect(await said(at.client, 'plain', 'echo')).toMatchObject(replaced)
  expect(await call(at.client, 'plain', 'echo')).toBe('ERR_IDENTITY_CHANGED')
  expect(await said(at.client, 'plain', 'echo')).toMatchObject(replaced)
})

test('what is accepted when it is first seen is not said to be refused for want of an acceptance', async () => {
  await using at = await daemon(
    configOf({ plain: fixture('echo'), manual: fixture('echo', { acceptance: 'manual' }) }),
  )
  expect(await said(at.client, 'plain', 'echo')).toEqual({
    outcome: 'sent',
    verdict: 'pass',
    detail: expect.stringContaining('acceptance: first-use'),
    identity: null,
  })
  expect(await call(at.client, 'plain', 'echo')).toBe('sent')
  expect(await said(at.client, 'manual', 'echo')).toMatchObject({ outcome: 'refused', verdict: 'refuse' })
  expect(await call(at.client, 'manual', 'echo')).toBe('ERR_DECLARATION_MISSING')
})

test('a server that is halted for what it lists keeps its identities, and nothing is foreseen by that list once it is released', async () => {
  await using at = await daemon(configOf({ pull: fixture('rug-pull') }))
  for (const tool of ['echo', 'poison', 'add']) expect(await call(at.client, 'pull', tool)).toBe('sent')
  await eventually(async () => (await at.client.call('servers/get', { server: 'pull' })).state === 'failed')
  const { trust } = await at.client.call('trust/list', { server: 'pull' })
  expect(trust.map(({ identity }) => identity)).toContainEqual(expect.stringMatching(/^pull\/echo@.*#1$/))
  await at.client.call('servers/release', { name: 'pull' })
  // Its next process lists what was accepted.
  expect(await said(at.client, 'pull', 'echo')).toMatchObject({ outcome: 'sent', verdict: 'pass' })
  expect((await at.client.call('tools/describe', { server: 'pull', tool: 'echo' })).halted).toBe(null)
  expect(await call(at.client, 'pull', 'echo')).toBe('sent')
})

test.each([
  ['of the era of handshakes', fixture('echo'), 'echo'],
  ['of 2026-07-28 alone', fixture('shares'), 'pid'],
])('a call to a server %s that an approval stands for would be sent, and is', async (_era, server, tool) => {
  const rules = [{ permission: 'mcp:*:*', action: 'ask' }]
  await using at = await daemon(configOf({ asked: server }, { rules }))
  {
    await using _watch = await watching(at.client, yes(at.client, 'policy'))
    expect(await call(at.client, 'asked', tool)).toBe('sent')
  }
  expect(await said(at.client, 'asked', tool)).toMatchObject({ outcome: 'sent' })
  expect(await call(at.client, 'asked', tool)).toBe('sent')
  // The era of its next process is known once that is up.
  await at.client.call('servers/stop', { server: 'asked' })
  expect(await said(at.client, 'asked', tool)).toMatchObject({ outcome: 'sent' })
})
