// Names, schemas and digests that have a secret's shape, or a credential's value in them: what is said of them holds all the same.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { endServe, fixture, type Place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { reachesOut, reachingPlace, recordsOf } from '../support/reaching-out.ts'

const token = `ghp_${'a1B2'.repeat(9)}`
const other = 'other-9876543210-token'
const meta = (use: string) => ({ credentials: [{ use, inject: 'meta', as: 'KEY' }] })

let at: Place
let child: TestDaemon['process']
let client: Client

beforeAll(async () => {
  at = await reachingPlace(
    {
      postgres: fixture('rug-pull', { profile: 'open', ...meta('pw') }),
      other: reachesOut([], meta('other')),
      schemas: fixture('like-secrets'),
    },
    { allow: [], credentials: ['meta'] },
    { credentials: { pw: { file: 'pw' }, other: { file: 'other' } } },
  )
  await writeFile(join(at.folder, 'pw'), 'postgres\n', { mode: 0o600 })
  await writeFile(join(at.folder, 'other'), `${other}\n`, { mode: 0o600 })
  ;({ process: child, client } = await serve(at))
  await lease()
})
afterAll(async () => {
  await endServe({ process: child, client })
  await at[Symbol.asyncDispose]()
})

const call = (server: string, tool: string, args: Record<string, unknown> = {}) =>
  client.call('tools/call', { server, tool, arguments: args })

/** The daemon knows the values from then on. */
async function lease(): Promise<void> {
  await call('postgres', 'echo')
  await call('other', 'say', { text: 'x' })
}

async function restart(): Promise<void> {
  await endServe({ process: child, client })
  ;({ process: child, client } = await serve(at))
}

const isHeld = { code: 'ERR_PERMIT_REFUSED' }

test('a hold of a server whose name is a credential’s value holds, and its quarantine outlives a restart', async () => {
  await client.call('servers/hold', { name: 'HP', server: 'postgres' })
  await expect(call('postgres', 'echo')).rejects.toMatchObject(isHeld)
  await restart()
  await expect(call('postgres', 'echo')).rejects.toMatchObject(isHeld)
  await client.call('servers/release', { name: 'HP' })
  await lease()
  await client.call('servers/quarantine', { server: 'postgres' })
  await restart()
  await expect(call('postgres', 'echo')).rejects.toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
  await client.call('servers/release', { name: 'postgres' })
  await lease()
})

test('what a person says with a secret in it, and policy would go by, is not taken', async () => {
  const refused = { code: 'ERR_INVALID_PARAMS' }
  for (const hold of [
    { name: 'HS', lineage: token },
    { name: token, server: 'other' },
    { tool: `x-${other}` },
    { name: 'HS', lineage: `of ${other}` },
  ])
    await expect(client.call('servers/hold', hold)).rejects.toMatchObject(refused)
  const stated = { version: '1', justification: 'x', tags: ['x'], acceptance: 'manual' }
  const entry = fixture('echo', { ...stated, tools: { deny: [`${other}_*`] } }) as Record<string, unknown>
  await expect(client.call('servers/add', { server: 'added', entry })).rejects.toMatchObject({
    ...refused,
    message: expect.stringContaining('the value of the credential other') as string,
  })
  const kept = recordsOf(at).filter(({ type }) => /^(hold|server)\./.test(type))
  expect(JSON.stringify(kept)).not.toContain(token)
  expect(JSON.stringify(recordsOf(at))).not.toContain(other)
})

test('a registration that has the name of a server in it comes back as it was', async () => {
  const source = join(at.folder, 'postgres')
  await mkdir(source)
  const stated = { version: '1', justification: 'x', tags: ['x'], acceptance: 'manual' }
  const mounts = [{ source, target: '/data', access: 'read', reason: 'x' }]
  const entry = fixture('echo', { ...stated, mounts, tools: { deny: ['postgres_*'] } })
  await client.call('servers/add', { server: 'added', entry: { ...entry } })
  const before = await client.call('servers/get', { server: 'added' })
  await restart()
  expect((await client.call('servers/get', { server: 'added' })).mounts).toEqual(before.mounts)
  await lease()
})

test('what a server does is held against it, and what it did well speaks for it', async () => {
  const trusted = async () => (await client.call('trust/list', { server: 'postgres' })).trust
  const of = async (tool: string) => (await trusted()).find((one) => one.tool === tool)
  expect((await of('echo'))?.evidence).toBeGreaterThan(1)
  await call('postgres', 'poison')
  await eventually(async () => (await of('echo'))?.epoch === 1)
  expect(await of('echo')).toMatchObject({ evidence: 0, violations: [{ failure: 'MP-FH-003' }] })
  await client.call('trust/reset', { server: 'postgres', tool: 'echo' })
  expect(await of('echo')).toMatchObject({ epoch: 2 })
})

test('what is accepted is what is listed: patterns, enumerations and names', async () => {
  const good = { dsn: 'postgres://ann:pw@db/x', of: token }
  const bad = { dsn: 'postgresa]@x' }
  for (let life = 0; life < 2; life += 1) {
    await expect(call('schemas', 'dsn', good)).resolves.toMatchObject({ type: 'output' })
    await expect(call('schemas', 'dsn', bad)).rejects.toMatchObject({ code: 'ERR_ARGUMENTS_INVALID' })
    await expect(call('schemas', token)).resolves.toMatchObject({ type: 'output' })
    const { trust } = await client.call('trust/list', { server: 'schemas' })
    expect(trust.map(({ tool }) => tool).sort()).toEqual(['dsn', token].sort())
    await restart()
  }
})

test('a digest that has a credential’s value in it by chance is the same when it is read again', async () => {
  const declared = await client.call('servers/declare', { server: 'schemas' })
  const tools = (declared.declaration as { tools: Record<string, { surface_digest: string }> }).tools
  await writeFile(join(at.folder, 'other'), tools['dsn']?.surface_digest.slice(5, 9) ?? '', { mode: 0o600 })
  await restart()
  await call('other', 'say', { text: 'x' })
  await client.call('declarations/accept', { server: 'schemas' })
  await expect(call('schemas', 'dsn', {})).resolves.toMatchObject({ type: 'output' })
})
