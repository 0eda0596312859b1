// An approval that stands when its daemon ends, and what it is for is another when the next one comes: it stands no more, whatever comes back.
import { appendFile, cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { approved, callPlain as call } from '../support/approved.ts'
import { attached } from '../support/attached.ts'
import { configOf, daemon, endServe, fixture, place, type Place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf } from '../support/witness.ts'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

const standing = async (client: Client): Promise<readonly string[]> =>
  (await client.call('approvals/list', {})).standing.map(({ id }) => id)

/** A place whose one server runs code of its own, and asks for every call; `entry` and `others` are of its next life. */
async function staged() {
  const at = await place()
  const code = join(at.folder, 'code')
  const configure = async (
    entry: object = {},
    others: object = {},
    first: readonly object[] = [],
  ): Promise<void> => {
    const plain = fixture('echo', { package: { source: code, target: '/app' }, version: '1', ...entry })
    const rules = [...first, { permission: 'mcp:*:*', action: 'ask' }]
    await writeFile(at.config, JSON.stringify(configOf({ plain, ...others }, { rules })))
  }
  await cp(fixtures, code, { recursive: true })
  await configure()
  return { at, code, configure }
}

/** One life of the daemon. */
async function living<T>(at: Place, act: (client: Client) => Promise<T>): Promise<T> {
  const life = await serve(at)
  const done = await act(life.client)
  await endServe(life)
  return done
}

type Staged = Awaited<ReturnType<typeof staged>>

test.each<[string, (stage: Staged) => Promise<void>, (stage: Staged) => Promise<void>, boolean]>([
  [
    'has another version',
    ({ configure }) => configure({ version: '2' }),
    ({ configure }) => configure(),
    false,
  ],
  [
    'is under another rule',
    ({ configure }) => configure({}, {}, [{ permission: 'mcp:other:*', action: 'deny' }]),
    ({ configure }) => configure(),
    false,
  ],
  [
    'is not there',
    ({ at }) => writeFile(at.config, JSON.stringify(configOf({}))),
    ({ configure }) => configure(),
    false,
  ],
  [
    'runs other code',
    ({ code }) => appendFile(join(code, 'echo.mjs'), '\n// changed\n'),
    ({ code }) => cp(fixtures, code, { recursive: true }),
    true,
  ],
  [
    'runs with other arguments',
    ({ configure }) => configure({ args: ['/app/echo.mjs', 'more'] }),
    ({ configure }) => configure(),
    true,
  ],
])('in a life in which its server %s an approval ends', async (_title, change, putBack, isSeenRunning) => {
  const stage = await staged()
  onTestFinished(() => stage.at[Symbol.asyncDispose]())
  await living(stage.at, approved)
  await change(stage)
  const between = await living(stage.at, async (client) => {
    if (isSeenRunning) await client.call('servers/start', { server: 'plain' })
    return standing(client)
  })
  expect(between).toEqual([])
  await putBack(stage)
  await living(stage.at, async (client) => {
    await expect(call(client)).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
    expect(await standing(client)).toEqual([])
    expect(await client.call('audit/verify', {})).toMatchObject({ ok: true })
  })
  expect(bodiesOf(stage.at.stateDir, 'approval.ended')).toHaveLength(1)
})

test('in a life in which another server was added it stands', async () => {
  const { at, configure } = await staged()
  onTestFinished(() => at[Symbol.asyncDispose]())
  await living(at, approved)
  await configure({}, { other: fixture('echo') })
  await living(at, async (client) => {
    expect(await standing(client)).toHaveLength(1)
    await call(client)
  })
})

test('one of a method ends where the server offers something else by it than what was accepted', async () => {
  const notes = fixture('changes', { args: ['/app/changes.mjs', '/tmp/reached'] })
  const rules = [
    { permission: 'mcp:notes:resources/read', action: 'ask' },
    { permission: 'mcp:*:*', action: 'allow' },
  ]
  await using at = await daemon(configOf({ notes }, { rules }))
  await using _watch = await watching(at.client, ({ id }) =>
    at.client.call('approvals/approve', { id, scope: 'policy' }),
  )
  await using host = await attached(at, 'notes')
  expect(await host.ask('resources/read', { uri: 'note:///a' })).toHaveProperty('result')
  expect(await standing(at.client)).toHaveLength(1)
  await host.ask('tools/call', {
    name: 'change',
    arguments: { list: 'resourceTemplates', patch: { name: 'other' } },
  })
  await eventually(async () => (await standing(at.client)).length === 0)
})
