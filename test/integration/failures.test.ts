// The failure table and the invariants, over the sockets of a real daemon: what is told, recorded and left, and what reached nobody.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { catalogue, type ErrorCode } from '../../src/errors.ts'
import { Journal } from '../../src/journal/journal.ts'
import { configOf, fixture, place, serve } from '../support/daemon.ts'
import type { Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { tempDir } from '../support/temp-dir.ts'
import { watching, yes } from '../support/watching.ts'
import { bodiesOf, witness, type Witness } from '../support/witness.ts'

let seen: Witness
let at: Place
let life: Awaited<ReturnType<typeof serve>>
let operator: Client
let host: Client
let raw: RawCaller
let told: Awaited<ReturnType<typeof hearing>>

const config = (version: string, grants: readonly object[] = []): object =>
  configOf(
    {
      gone: fixture('crash-at-start'),
      manual: seen.entry('manual', { acceptance: 'manual' }),
      poisoned: seen.entry('poisoned'),
      slow: seen.entry('slow'),
      grown: seen.entry('grown'),
      held: seen.entry('held'),
      wallless: seen.entry('wallless', { runtime: 'runsc' }),
      violated: seen.entry('violated'),
      renewed: seen.entry('renewed', { version }),
      plain: seen.entry('plain'),
      asked: seen.entry('asked', { version }),
      scoped: seen.entry('scoped', { acceptance: 'manual', mounts: [seen.mount, ...grants] }),
    },
    {
      rules: [
        { permission: 'mcp:asked:*', action: 'ask' },
        { permission: 'mcp:*:*', action: 'allow' },
      ],
    },
  )

const call = (server: string, tool = 'echo', args: object = {}) =>
  host.call('tools/call', { server, tool, arguments: { ...args } })

/** Says yes to whatever is asked meanwhile, for as long as it is told; the last question. */
async function granting(scope: 'once' | 'policy', work: () => Promise<unknown>): Promise<string> {
  await using watch = await watching(operator, yes(operator, scope))
  await work()
  return watch.asked.at(-1)?.id ?? ''
}

async function begin(): Promise<void> {
  life = await serve(at)
  operator = life.client
  host = await at.connect('host')
}

async function end(): Promise<void> {
  await host[Symbol.asyncDispose]()
  await operator[Symbol.asyncDispose]()
  const ended = once(life.process, 'exit')
  life.process.kill('SIGTERM')
  await ended
}

beforeAll(async () => {
  seen = await witness()
  at = await place({ version: 1 })
  await writeFile(at.config, JSON.stringify(config('2.0.0')))
  await begin()
  await call('renewed')
  await call('violated')
  await granting('policy', () => call('asked', 'echo', { n: 1 }))
  await call('asked', 'echo', { n: 1 }) // stands
  await end()
  // What an earlier life of the daemon saw a server do.
  const journal = Journal.open({
    directory: join(at.stateDir, 'journal'),
    key: readFileSync(join(at.stateDir, 'journal.key')),
    daemon: 'd-earlier',
    durability: 'write',
    segmentBytes: 1 << 20,
    replay: () => undefined,
  })
  const body = { server: 'violated', failure: 'MP-FH-008', reason: 'it reached for another host' }
  await journal.append({ type: 'server.quarantined', body: JSON.stringify(body) })
  await journal[Symbol.asyncDispose]()
  await writeFile(at.config, JSON.stringify(config('1.9.0')))
  await begin()
  raw = await RawCaller.open(join(at.runtimeDir, 'host', 'host.sock'))
  told = await hearing(host, { mayEnd: true }) // a test below starts it anew
}, 60_000)
afterAll(async () => {
  await told[Symbol.asyncDispose]()
  raw[Symbol.dispose]()
  await end()
  await at[Symbol.asyncDispose]()
  await seen[Symbol.asyncDispose]()
})

const journalDir = (): string => join(at.stateDir, 'journal')
const trustOf = async (server: string) => (await operator.call('trust/list', { server })).trust
const stateOf = async (server: string) => (await operator.call('servers/get', { server })).state
/** It may be on its way down yet. */
const runsAgain = (server: string) => eventually(() => call(server))
const lastPlain = () => call('plain', 'echo', { still: 'served' })

interface Row {
  readonly failure: string
  readonly what: string
  readonly server: string
  readonly tool?: string
  readonly timeoutMs?: number
  readonly code: ErrorCode
  readonly event: string
  readonly arrange?: () => Promise<unknown>
  /** What stands afterwards, and what mends it */
  readonly after: () => Promise<unknown>
  /** Where the promise is not that nothing reached the server */
  readonly isSent?: boolean
  /** Where no record of the refusal can be made */
  readonly isUnrecorded?: boolean
}

const rows: readonly Row[] = [
  {
    failure: 'MP-FH-001',
    what: 'a server that is not there',
    server: 'gone',
    code: 'ERR_SERVER_UNAVAILABLE',
    event: 'server/unavailable',
    after: () => eventually(async () => ['pending', 'failed'].includes(await stateOf('gone'))),
  },
  {
    failure: 'MP-FH-002',
    what: 'a declaration that nobody accepted',
    server: 'manual',
    code: 'ERR_DECLARATION_MISSING',
    event: 'surface/ungoverned-call',
    after: async () => {
      expect(bodiesOf(at.stateDir, 'surface.accepted').filter(({ server }) => server === 'manual')).toEqual(
        [],
      )
      await operator.call('declarations/accept', { server: 'manual', tools: ['echo'] })
      await call('manual')
      await expect(call('manual', 'add')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
    },
  },
  {
    failure: 'MP-FH-003',
    what: 'a tool that is not the one that was accepted',
    server: 'poisoned',
    code: 'ERR_DECLARATION_MISMATCH',
    event: 'declaration/mismatch',
    arrange: async () => {
      await call('poisoned')
      await call('poisoned', 'poison')
    },
    after: async () => {
      const [echo] = (await trustOf('poisoned')).filter(({ tool }) => tool === 'echo')
      expect(echo).toMatchObject({ tier: 'untrusted', evidence: 0, epoch: 1, confidence: 0.5 })
      expect(echo?.violations).toMatchObject([{ failure: 'MP-FH-003' }])
      await call('poisoned', 'poison') // the other tools stand
      expect(await stateOf('poisoned')).toBe('connected')
    },
  },
  {
    failure: 'MP-FH-004',
    what: 'a call without an answer in time',
    server: 'slow',
    tool: 'wait',
    timeoutMs: 200,
    code: 'ERR_CALL_TIMEOUT',
    event: 'call/timeout',
    isSent: true,
    after: async () => {
      expect(await operator.call('permits/list', {})).toEqual({ permits: [] })
      const [outcome] = bodiesOf(at.stateDir, 'call.outcome').filter(({ server }) => server === 'slow')
      expect(outcome).toMatchObject({ outcome: 'timeout', subject: 'wait' })
      const [wait] = (await trustOf('slow')).filter(({ tool }) => tool === 'wait')
      expect(wait?.evidence ?? 0).toBe(0)
      await eventually(() => seen.lines('slow').at(-1)?.includes('notifications/cancelled'))
      await call('slow')
    },
  },
  {
    failure: 'MP-FH-005',
    what: 'a tool that nobody declared, on a static surface',
    server: 'grown',
    code: 'ERR_SURFACE_UNGOVERNED',
    event: 'surface/ungoverned',
    arrange: async () => {
      await call('grown')
      await call('grown', 'add')
    },
    after: async () => {
      expect(await stateOf('grown')).toBe('failed')
      expect(bodiesOf(at.stateDir, 'server.quarantined').at(-1)).toMatchObject({ failure: 'MP-FH-005' })
      await expect(call('grown', 'wait')).rejects.toMatchObject({ code: 'ERR_SURFACE_UNGOVERNED' })
      for (const one of await trustOf('grown')) expect(one).toMatchObject({ tier: 'untrusted', epoch: 1 })
      await operator.call('servers/release', { name: 'grown' })
      await runsAgain('grown')
    },
  },
  {
    failure: 'MP-FH-006',
    what: 'a permit that fails a check at the boundary',
    server: 'held',
    code: 'ERR_PERMIT_REFUSED',
    event: 'permit/refused',
    arrange: async () => {
      await call('held')
      await operator.call('servers/hold', { server: 'held', name: 'audit' })
    },
    after: async () => {
      expect(await operator.call('permits/list', {})).toEqual({ permits: [] })
      expect(await stateOf('held')).toBe('connected')
      // The intent was durable before the check, and ends as refused.
      const intent = bodiesOf(at.stateDir, 'call.intent').findLast(({ server }) => server === 'held')
      expect(bodiesOf(at.stateDir, 'call.denied').at(-1)).toMatchObject({
        call: intent?.['call'],
        reason: expect.stringContaining('checkpoint'),
      })
      await operator.call('servers/release', { name: 'audit' })
      await call('held')
    },
  },
  {
    failure: 'MP-FH-007',
    what: 'a sandbox that can’t be built',
    server: 'wallless',
    code: 'ERR_SANDBOX_UNENFORCEABLE',
    event: 'isolation/failed',
    after: async () => {
      expect(await stateOf('wallless')).toBe('failed')
      expect((await operator.call('servers/get', { server: 'wallless' })).instances).toEqual([])
      expect(seen.lines('wallless')).toEqual([])
    },
  },
  {
    failure: 'MP-FH-008',
    what: 'a server that went beyond its grants, in a daemon’s life before',
    server: 'violated',
    code: 'ERR_SCOPE_VIOLATION',
    event: 'scope/violated',
    after: async () => {
      expect(await stateOf('violated')).toBe('failed')
      await expect(host.call('servers/release', { name: 'violated' })).rejects.toMatchObject({
        code: 'ERR_NOT_AUTHORISED',
      })
      await operator.call('servers/release', { name: 'violated', reason: 'looked at' })
      await runsAgain('violated')
    },
  },
  {
    failure: 'MP-FH-009',
    what: 'another version than the accepted one, an older one too',
    server: 'renewed',
    code: 'ERR_IDENTITY_CHANGED',
    event: 'version/mismatch',
    after: async () => {
      await operator.call('declarations/accept', { server: 'renewed' })
      expect((await call('renewed')).metadata.identity).toBe('renewed/echo@1.9.0#2')
    },
  },
  {
    failure: 'MP-FH-010',
    what: 'a journal that can’t be written',
    server: 'plain',
    code: 'ERR_JOURNAL',
    event: 'journal/blocked',
    isUnrecorded: true,
    arrange: async () => {
      await lastPlain()
      await rename(journalDir(), `${journalDir()}.away`)
    },
    after: async () => {
      await rename(`${journalDir()}.away`, journalDir())
      await lastPlain()
      expect(await operator.call('audit/verify', {})).toMatchObject({ ok: true })
    },
  },
]

describe('the failure table', () => {
  test.each(rows)('$failure: $what', async (row) => {
    const { server, tool = 'echo', code, failure, timeoutMs } = row
    await row.arrange?.()
    const before = seen.calls(server).length
    const since = told.events.length
    const marker = `${failure} ${server}`
    const { error } = await raw.ask('tools/call', {
      server,
      tool,
      arguments: { marker },
      ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
    })
    // What the caller is told, on the wire.
    const { rpc, retryable } = catalogue[code]
    expect(error).toMatchObject({ code: rpc, data: { code, failure, retryable } })
    expect(error?.message).toMatch(new RegExp(`${server}|journal`))
    // The event, to the host whose call it was.
    const event = await eventually(() =>
      told.events.slice(since).find(({ type, detail }) => type === row.event && detail['tool'] === tool),
    )
    expect(event).toMatchObject({ detail: { failure, tool } })
    if (row.isUnrecorded !== true) expect(event.server).toBe(server)
    // The record.
    const [denied] = bodiesOf(at.stateDir, 'call.denied').filter(({ request }) =>
      String(request).includes(marker),
    )
    if (row.isSent === true || row.isUnrecorded === true) expect(denied).toBeUndefined()
    else expect(denied).toMatchObject({ server, subject: tool, code, failure, reason: error?.message })
    // What reached the server.
    expect(seen.calls(server).length - before).toBe(row.isSent === true ? 1 : 0)
    await row.after()
    await lastPlain() // and whatever became of it, the others are served
  })
})

describe('the invariants', () => {
  test('INV-MP-001: nothing is called without an accepted declaration of just that tool', async () => {
    const before = seen.calls('plain').length
    for (const tool of ['nobody', 'added', '__proto__', 'constructor', 'ECHO', 'echo '])
      expect((await raw.ask('tools/call', { server: 'plain', tool })).error?.data.code, tool).toMatch(
        /^ERR_(TOOL_NOT_FOUND|POLICY_DENIED|INVALID_PARAMS)$/,
      )
    expect(seen.calls('plain').length).toBe(before)
    const accepted = bodiesOf(at.stateDir, 'surface.accepted').map(({ server }) => server)
    const called = bodiesOf(at.stateDir, 'call.intent').map(({ server }) => server)
    expect(called.filter((server) => !accepted.includes(server))).toEqual([])
  })

  test('INV-MP-002: every call has a permit of its identity, which is gone with it and no host can use', async () => {
    const { metadata } = await call('plain', 'echo', { for: 'a permit' })
    expect(metadata).toMatchObject({ identity: 'plain/echo@0#1', permit: expect.stringMatching(/^p-/) })
    const intents = bodiesOf(at.stateDir, 'call.intent')
    expect(new Set(intents.map(({ permit }) => permit)).size).toBe(intents.length)
    expect(intents.at(-1)).toMatchObject({ permit: metadata.permit, identity: metadata.identity })
    expect(await operator.call('permits/list', {})).toEqual({ permits: [] })
    await expect(operator.call('permits/revoke', { id: metadata.permit ?? '' })).rejects.toMatchObject({
      code: 'ERR_PERMIT_NOT_FOUND',
    })
    // Nothing that a host can say carries a permit: not as a parameter, and as `_meta` or an argument it is only words.
    const before = seen.calls('held').length
    await operator.call('servers/hold', { server: 'held', name: 'pause' })
    for (const more of [{ permit: metadata.permit }, { approval: 'a-x' }, { metadata }])
      expect((await raw.ask('tools/call', { server: 'held', tool: 'echo', ...more })).error?.data.code).toBe(
        'ERR_INVALID_PARAMS',
      )
    const args = { permit: metadata.permit, _meta: { permit: metadata.permit } }
    expect(
      (await raw.ask('tools/call', { server: 'held', tool: 'echo', arguments: args })).error?.data.code,
    ).toBe('ERR_PERMIT_REFUSED')
    await operator.call('servers/release', { name: 'pause' })
    expect(seen.calls('held').length).toBe(before)
  })

  test('INV-MP-003: what reached a server had passed the boundary, and its intent was durable', async () => {
    const intents = bodiesOf(at.stateDir, 'call.intent')
    const refused = new Set(bodiesOf(at.stateDir, 'call.denied').map((one) => one['call']))
    for (const server of ['plain', 'held', 'poisoned', 'grown', 'renewed', 'manual', 'slow', 'violated']) {
      const passed = intents.filter((one) => one['server'] === server && !refused.has(one['call']))
      const sent = seen.calls(server).map((line) => JSON.stringify(JSON.parse(line).params))
      expect(sent.toSorted(), server).toEqual(passed.map(({ request }) => String(request)).toSorted())
    }
  })

  test.each([
    ['servers/add', { server: 'x', entry: {} }],
    ['declarations/accept', { server: 'manual' }],
    ['servers/declare', { server: 'manual' }],
    ['servers/release', { name: 'grown' }],
    ['approvals/approve', { id: 'a-x' }],
    ['approvals/list', {}],
    ['approvals/subscribe', {}],
    ['trust/reset', { server: 'plain' }],
    ['permits/list', {}],
    ['permits/revoke', { server: 'plain' }],
    ['audit/query', {}],
    ['policy/explain', { server: 'plain', tool: 'echo' }],
    ['daemon/shutdown', {}],
  ])('INV-MP-004: only an operator may %s', async (method, params) => {
    const { error } = await raw.ask(method, params)
    expect(error).toMatchObject({ data: { code: 'ERR_NOT_AUTHORISED', retryable: false } })
    expect(catalogue.ERR_NOT_AUTHORISED.exit).toBe(6)
  })

  test('INV-MP-004: a host launches nothing where the operator did not say that it may', async () => {
    const { error } = await raw.ask('servers/launch', { name: 'mine', command: 'node', args: [] })
    expect(error?.data.code).toBe('ERR_DYNAMIC_REFUSED')
    expect((await host.call('servers/list', {})).servers.map(({ name }) => name)).not.toContain('mine')
  })

  test('INV-MP-005: no approval survives another version', async () => {
    // It stood for version 2.0.0, for just these arguments.
    expect(bodiesOf(at.stateDir, 'approval.standing')).toMatchObject([{ identity: 'asked/echo@2.0.0#1' }])
    await expect(call('asked', 'echo', { n: 1 })).rejects.toMatchObject({ code: 'ERR_IDENTITY_CHANGED' })
    const before = seen.calls('asked').length
    await operator.call('declarations/accept', { server: 'asked' })
    await expect(call('asked', 'echo', { n: 1 })).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
    expect(seen.calls('asked').length).toBe(before)
    const id = await granting('once', () => call('asked', 'echo', { n: 1 }))
    // Once is once, and the id of an approval is worth nothing afterwards, to nobody.
    await expect(call('asked', 'echo', { n: 1 })).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
    await expect(operator.call('approvals/approve', { id })).rejects.toMatchObject({
      code: 'ERR_APPROVAL_NOT_FOUND',
    })
    expect(seen.calls('asked').length).toBe(before + 1)
  })

  test('INV-MP-006: a declared scope must lie in what the sandbox has, when accepted and when called', async () => {
    await using folder = await tempDir()
    await chmod(folder.path, 0o755)
    const data = { source: folder.path, target: '/data', access: 'read', reason: 'to be taken away' }
    const restart = async (grants: readonly object[]): Promise<void> => {
      await end()
      await writeFile(at.config, JSON.stringify(config('1.9.0', grants)))
      await begin()
    }
    const { declaration } = await operator.call('servers/declare', { server: 'scoped' })
    const scoped = (scope: string) => ({
      ...declaration,
      tools: { echo: { ...declaration.tools['echo'], resource_scopes: [scope] } },
    })
    for (const scope of ['/etc', '/data', '/seen-not', '/tmp/../etc', 'example.org:443'])
      await expect(
        operator.call('declarations/accept', { server: 'scoped', declaration: scoped(scope) }),
        scope,
      ).rejects.toMatchObject({ code: 'ERR_CONFIG_INVALID' })
    await restart([data])
    await operator.call('declarations/accept', { server: 'scoped', declaration: scoped('/data/here') })
    await call('scoped')
    // The grant goes, the declaration stays: the boundary refuses what the sandbox does not contain any more.
    await restart([])
    const before = seen.calls('scoped').length
    await expect(call('scoped')).rejects.toMatchObject({
      code: 'ERR_PERMIT_REFUSED',
      message: expect.stringContaining('side-effects'),
    })
    expect(seen.calls('scoped').length).toBe(before)
  })
})
