// Permits over the sockets: one is caught while its call waits for its process, and everything that should end it is tried.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallId } from '../../src/lib/ids.ts'
import type { Client } from '../../src/client/client.ts'
import { attached, type AttachedHost } from '../support/attached.ts'
import { configOf, daemon, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { elapsed } from '../support/instants.ts'
import { watching, yes } from '../support/watching.ts'
import { bodiesOf, witness, type Witness } from '../support/witness.ts'

let seen: Witness
let at: TestDaemon
let operator: Client
let host: Client
beforeAll(async () => {
  seen = await witness()
  const servers = { plain: seen.entry('plain'), gated: gated('gated'), asking: gated('asking') }
  const rules = [
    { permission: 'mcp:asking:*', action: 'ask' },
    { permission: 'mcp:*:*', action: 'allow' },
  ]
  at = await daemon(configOf(servers, { rules }))
  operator = at.client
  host = await at.connect('host')
  await operator.call('servers/add', { server: 'removed', entry: { ...gated('removed') } })
  for (const server of ['gated', 'removed']) await call(server) // accepted by now
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
  await seen[Symbol.asyncDispose]()
})

const call = (server: string, client = host) =>
  client.call('tools/call', { server, tool: 'echo', arguments: { text: server } })
const codeOf = (made: Promise<unknown>): Promise<{ code: string; details?: object } | 'done'> =>
  made.then(
    () => 'done' as const,
    (error: { code: string }) => error,
  )

const gateOf = (name: string): string => join(seen.source, `${name}.gate`)

/** The entry of a server with a process for each call, whose processes begin when its gate is open. */
const gated = (name: string): object =>
  seen.entry(name, {
    args: ['/app/gated.mjs', `/seen/${name}`, `/seen/${name}.gate`],
    instance: 'call',
    version: '1',
    justification: 'a test',
    tags: [],
  })

/** A call that waits for its process; `open` lets that begin. */
async function waiting(server: string) {
  await operator.call('servers/release', { name: server }).catch(() => undefined) // what stands of the test before
  await host.call('servers/start', { server })
  const before = seen.calls(server).length
  writeFileSync(gateOf(server), '')
  const made = codeOf(call(server))
  return {
    made,
    permit: await permitOf(server),
    open: () => rmSync(gateOf(server)),
    sent: () => seen.calls(server).length - before,
  }
}

/** The permit that a waiting call has. */
const permitOf = async (server: string): Promise<string> =>
  eventually(async () => {
    const { permits } = await operator.call('permits/list', {})
    return permits.find(({ identity }) => identity.startsWith(`${server}/`))?.id
  })

const refusedAs = (check: string, why: string) => ({
  code: 'ERR_PERMIT_REFUSED',
  details: { check },
  message: expect.stringContaining(why) as string,
})

describe('a permit of a call that waits', () => {
  test.each<[string, string, (server: string, permit: string) => Promise<unknown>, object]>([
    [
      'it is revoked by its name',
      'gated',
      async (_server, id) => expect(await operator.call('permits/revoke', { id })).toEqual({ revoked: [id] }),
      refusedAs('authenticity', 'it was revoked, or has ended'),
    ],
    [
      'those of its server are revoked',
      'gated',
      async (server, id) =>
        expect(await operator.call('permits/revoke', { server })).toEqual({ revoked: [id] }),
      refusedAs('authenticity', 'it was revoked, or has ended'),
    ],
    [
      'it is revoked though that can’t be recorded then',
      'gated',
      async (_server, id) => {
        const journal = join(at.stateDir, 'journal')
        renameSync(journal, `${journal}.away`)
        await expect(operator.call('permits/revoke', { id })).rejects.toMatchObject({
          code: 'ERR_JOURNAL',
          message: expect.stringMatching(/^it has effect all the same/) as string,
        })
        expect((await operator.call('permits/list', {})).permits).toEqual([])
        renameSync(`${journal}.away`, journal)
        await eventually(() => bodiesOf(at.stateDir, 'permit.revoked').at(-1)?.['permit'] === id)
      },
      refusedAs('authenticity', 'it was revoked, or has ended'),
    ],
    [
      'it is revoked for a reason',
      'gated',
      (_server, id) => operator.call('permits/revoke', { id, reason: 'not\u202e now' }),
      refusedAs('authenticity', String.raw`an operator revoked it: not\u202e now`),
    ],
    [
      'its tool’s trust is reset',
      'gated',
      (server) => operator.call('trust/reset', { server, tool: 'echo', reason: 'not any more' }),
      refusedAs('authenticity', 'an operator reset the trust of gated/echo: not any more'),
    ],
    [
      'a hold covers it',
      'gated',
      (server) => operator.call('servers/hold', { server }),
      refusedAs('checkpoint', 'sallyport release gated'),
    ],
    ['its server is quarantined', 'gated', (server) => operator.call('servers/quarantine', { server }), {}],
    [
      'its server is removed',
      'removed',
      async (server, permit) =>
        expect(await operator.call('servers/remove', { server })).toMatchObject({ permits: [permit] }),
      {},
    ],
    [
      'the process by which its server is known is killed',
      'gated',
      async (server) => {
        const lister = async () =>
          (await host.call('servers/get', { server })).instances.find(({ purpose }) => purpose === 'control')
        const { id, pid } = (await lister()) ?? {}
        process.kill(pid ?? 0, 'SIGKILL')
        await eventually(async () => (await lister())?.state === 'backoff' || (await lister())?.id !== id)
      },
      { code: 'ERR_SERVER_UNAVAILABLE', message: expect.stringMatching(/its sandbox was lost$/) as string },
    ],
  ])('carries nothing when %s', async (_title, server, end, error) => {
    const { made, permit, open, sent } = await waiting(server)
    await end(server, permit)
    open()
    expect(await made).toMatchObject({ code: expect.stringMatching(/^ERR_/), ...error })
    expect(sent()).toBe(0)
    expect((await operator.call('permits/list', {})).permits).toEqual([])
    // Once is all: what was ended is no permit for whoever knows its name.
    await expect(operator.call('permits/revoke', { id: permit })).rejects.toMatchObject({
      code: 'ERR_PERMIT_NOT_FOUND',
      exitStatus: 8,
    })
    const intent = bodiesOf(at.stateDir, 'call.intent').find((one) => one['permit'] === permit)
    const ends = [...bodiesOf(at.stateDir, 'call.denied'), ...bodiesOf(at.stateDir, 'call.outcome')]
    expect(ends.filter((one) => one['call'] === intent?.['call'])).toHaveLength(1)
  })

  test('carries its call when nothing happens', async () => {
    const { made, open, sent } = await waiting('gated')
    open()
    expect(await made).toBe('done')
    expect(sent()).toBe(1)
  })
})

test('a yes that is taken back while nothing can be recorded is over all the same, on record later', async () => {
  await using watch = await watching(operator, yes(operator, 'policy'))
  await call('asking')
  const { id = '' } = watch.asked.at(-1) ?? {}
  const journal = join(at.stateDir, 'journal')
  renameSync(journal, `${journal}.away`)
  await expect(operator.call('approvals/deny', { id, reason: 'a slip' })).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
    message: expect.stringMatching(/^it has effect all the same/) as string,
  })
  renameSync(`${journal}.away`, journal)
  expect((await operator.call('approvals/list', {})).standing.map((one) => one.id)).not.toContain(id)
  const isOver = ({ ids }: { readonly ids?: unknown }): boolean => Array.isArray(ids) && ids.includes(id)
  await eventually(() => bodiesOf(at.stateDir, 'approval.ended').some(isOver))
})

test.each(['policy', 'once'] as const)(
  'a permit ends with the approval that it stands on, said for %s',
  async (scope) => {
    await using watch = await watching(operator, yes(operator, scope))
    await call('asking')
    const { made, open, sent } = await waiting('asking')
    const { id = '' } = watch.asked.at(-1) ?? {}
    await operator.call('approvals/deny', { id, reason: 'a slip' })
    open()
    expect(await made).toMatchObject({
      code: 'ERR_APPROVAL_DENIED',
      message: 'asking echo was not called: an operator said no: a slip',
    })
    expect(sent()).toBe(0)
    expect(bodiesOf(at.stateDir, 'call.denied').at(-1)).toMatchObject({
      code: 'ERR_APPROVAL_DENIED',
      reason: expect.stringContaining('an operator said no: a slip') as string,
    })
    expect(bodiesOf(at.stateDir, 'approval.revoked').at(-1)).toMatchObject({ id, reason: 'a slip' })
    // What was sent or ended is not taken back again.
    for (const one of watch.asked)
      expect(await codeOf(operator.call('approvals/deny', { id: one.id }))).toMatchObject({
        code: 'ERR_APPROVAL_NOT_FOUND',
      })
  },
)

test.each([
  ['over the socket', (_session: AttachedHost) => codeOf(call('gated'))],
  [
    'in a session',
    async (session: AttachedHost) => (await session.call('echo', { text: 'gated' })).error?.data ?? 'done',
  ],
] as const)(
  'a call that is refused once its process is up is on record and told as refused: %s',
  async (_way, make) => {
    await using session = await attached(at, 'gated')
    await using told = await hearing(operator)
    writeFileSync(gateOf('gated'), '')
    const made = make(session)
    const permit = await permitOf('gated')
    await eventually(async () => {
      const { instances } = await operator.call('servers/get', { server: 'gated' })
      return instances.some(({ purpose, state }) => purpose === 'call' && state === 'starting')
    })
    await operator.call('permits/revoke', { id: permit })
    rmSync(gateOf('gated'))
    expect(await made).toMatchObject({ code: 'ERR_PERMIT_REFUSED' })
    const { call: id } = bodiesOf(at.stateDir, 'call.intent').find((one) => one['permit'] === permit) ?? {}
    expect(bodiesOf(at.stateDir, 'call.denied').filter((one) => one['call'] === id)).toMatchObject([
      { code: 'ERR_PERMIT_REFUSED', failure: 'MP-FH-006', check: 'authenticity' },
    ])
    expect(bodiesOf(at.stateDir, 'call.outcome').filter((one) => one['call'] === id)).toEqual([])
    expect(await operator.call('calls/explain', { call_id: String(id) as CallId })).toMatchObject({
      state: 'refused',
      check: 'authenticity',
      refusal: { code: 'ERR_PERMIT_REFUSED' },
      outcome: null,
    })
    const isTold = (what: string): boolean =>
      told.events.some(({ type, detail }) => type === what && detail['call'] === id)
    await eventually(() => isTold('permit/refused'))
    expect(['call/denied', 'call/ended', 'call/failed'].filter(isTold)).toEqual(['call/denied'])
  },
)

test('what a session says of permits and approvals is words for the server, and opens nothing', async () => {
  const { metadata } = await call('plain')
  await operator.call('servers/hold', { server: 'plain', name: 'pause' })
  await using session = await attached(at, 'plain')
  const before = seen.calls('plain').length
  const permit = JSON.stringify(metadata.permit)
  for (const more of [
    `"_meta":{"sallyport/permit":${permit},"permit":${permit}}`,
    `"permit":${permit},"approval":"a-x","identity":"plain/echo@0#1"`,
  ]) {
    const reply = await session.say(
      `{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"},${more}}}`,
    )
    expect(reply.error?.data.code).toBe('ERR_PERMIT_REFUSED')
  }
  expect(seen.calls('plain').length).toBe(before)
  await operator.call('servers/release', { name: 'pause' })
})

test('a process that is longer in coming up than a permit lives is asked all the same: its time is counted beside', async () => {
  const slow = { ...gated('slow'), timeouts: { initialize_ms: 60_000 } }
  await using apart = await daemon(configOf({ slow }, { permit: { ttl_ms: 20 } }))
  const { client } = apart
  await client.call('servers/start', { server: 'slow' })
  writeFileSync(gateOf('slow'), '')
  const made = codeOf(call('slow', client))
  await eventually(() => bodiesOf(apart.stateDir, 'call.intent').length === 1)
  await elapsed(100)
  const { permits } = await client.call('permits/list', {})
  rmSync(gateOf('slow'))
  expect(await made).toBe('done')
  expect(permits).toMatchObject([{ identity: expect.stringContaining('slow/echo') }])
})
