// The failure table and the invariants of governed calls, on real servers, a real journal and the daemon's own governor.
import { existsSync, readFileSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { recordOf } from '../../../src/daemon/outside.ts'
import { approvalMethods } from '../../../src/daemon/methods/approval-methods.ts'
import { EventLog } from '../../../src/daemon/events.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { SallyportError } from '../../../src/errors.ts'
import { newCallId, newInstanceId } from '../../../src/lib/ids.ts'
import { RawJson } from '../../../src/lib/raw-json.ts'
import type { Rule, ServerSettings } from '../../../src/schema/settings.ts'
import type { Launch, ToolCall } from '../../../src/supervisor/ports.ts'
import { allowAll, attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { governed } from '../../support/governance.ts'
import { handled } from '../../support/handled.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller, superviseAll, type Supervised } from '../../support/supervisor.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { patienceMs } from '../../support/patience.ts'

/** As long as each wait may take, counted from where it begins */
const waiting = {
  get signal() {
    return AbortSignal.timeout(patienceMs)
  },
}

interface Stage extends AsyncDisposable {
  readonly all: Supervised
  /** Names of the tools whose calls reached the server */
  readonly reached: () => readonly string[]
  readonly call: (tool: string, args?: object, more?: Partial<ToolCall>) => Promise<unknown>
  readonly records: (type: string) => readonly Record<string, unknown>[]
  readonly events: (type: string) => readonly unknown[]
}

interface Wishes {
  readonly from?: readonly string[]
  readonly server?: Partial<ServerSettings>
  readonly state?: string
  readonly launch?: Launch
  readonly code?: string
  readonly rules?: readonly Rule[]
}

async function stage({
  from = [],
  server = {},
  launch,
  state,
  code = 'code',
  rules = allowAll,
}: Wishes = {}): Promise<Stage> {
  const dir = await tempDir()
  const record = join(dir.path, 'calls')
  const base = serverSettings('rug-pull.mjs')
  const settings = { ...base, args: [...base.args, record, ...from], ...server }
  const all = await superviseAll([settings], {
    codeOf: () => code,
    rules,
    state: state ?? dir.path,
    ...(launch === undefined ? {} : { launch }),
  })
  return {
    all,
    reached: () => (existsSync(record) ? readFileSync(record, 'utf8').trim().split('\n') : []),
    call: (tool, args = {}, more = {}) =>
      all.supervisor.call(
        caller(),
        {
          server: 'fixture',
          tool,
          arguments: new RawJson(JSON.stringify(args)),
          timeoutMs: null,
          generation: null,
          lineage: null,
          ...more,
        },
        waiting,
      ),
    records: (type) =>
      all.governed
        .records()
        .filter((one) => one.type === type)
        .map(({ body }) => body as Record<string, unknown>),
    events: (type) => all.events.filter((event) => event.type === type),
    async [Symbol.asyncDispose]() {
      await all[Symbol.asyncDispose]()
      await dir[Symbol.asyncDispose]()
    },
  }
}

const refused = (code: string, failure: string | null) => ({ code, failure })
const settled = (at: Stage) => eventually(() => at.records('call.outcome').length > 0)

/** The refusal of a call of `echo`, and that it is recorded, told, and reached nobody. */
async function expectRefusal(at: Stage, code: string, failure: string, event: string): Promise<void> {
  const before = at.reached().length
  await expect(at.call('echo')).rejects.toMatchObject({ code })
  expect(at.records('call.denied').at(-1)).toMatchObject({ subject: 'echo', ...refused(code, failure) })
  expect(at.events(event).at(-1)).toMatchObject({ server: 'fixture', detail: { failure } })
  expect(at.reached().length).toBe(before)
}

describe('the failure table', () => {
  test('MP-FH-001: a server that is not there', async () => {
    await using at = await stage({ server: { args: serverSettings('crash-at-start.mjs').args } })
    await expectRefusal(at, 'ERR_SERVER_UNAVAILABLE', 'MP-FH-001', 'server/unavailable')
  })

  test('MP-FH-002: a declaration that was not accepted', async () => {
    await using at = await stage({ server: { acceptance: 'manual' } })
    await expectRefusal(at, 'ERR_DECLARATION_MISSING', 'MP-FH-002', 'surface/ungoverned-call')
    const operator = caller(0, 'operator')
    const { supervisor, governed } = at.all
    const surface = await supervisor.look(operator, 'fixture', { signal: AbortSignal.timeout(patienceMs) })
    const server = supervisor.settingsOf(operator, 'fixture')
    await governed.governance.surfaces.accept(
      { server, ...surface },
      {
        by: '0',
        peer: { uid: 0, gid: 0, pid: 1 },
        declared: null,
        declaredVersion: null,
        only: null,
      },
    )
    await at.call('echo')
    expect(at.records('surface.accepted')).toMatchObject([{ acceptedBy: '0', declarationVersion: 1 }])
    expect(at.reached()).toEqual(['echo'])
  })

  test('MP-FH-003: a tool that changed after it was accepted is never called, and its trust is reset', async () => {
    await using at = await stage()
    await at.call('echo')
    await at.call('poison')
    await expectRefusal(at, 'ERR_DECLARATION_MISMATCH', 'MP-FH-003', 'declaration/mismatch')
    const { ledger } = at.all.governed.governance
    expect(ledger.trust('fixture', 'echo')).toMatchObject({ tier: 'untrusted', evidence: 0, epoch: 1 })
    expect(ledger.trust('fixture', 'poison')).toMatchObject({ epoch: 0 })
    expect(at.records('surface.changed')).toMatchObject([{ server: 'fixture' }])
    expect(at.records('trust.violated')).toMatchObject([{ tool: 'echo', failure: 'MP-FH-003' }])
    await at.call('add')
  })

  test('MP-FH-004: a call without an answer in time', async () => {
    await using at = await stage()
    await expect(at.call('wait', {}, { timeoutMs: 100 })).rejects.toMatchObject({ code: 'ERR_CALL_TIMEOUT' })
    await settled(at)
    expect(at.records('call.outcome')).toMatchObject([{ outcome: 'timeout', subject: 'wait' }])
    expect(at.events('call/timeout')).toMatchObject([{ detail: { failure: 'MP-FH-004' } }])
    expect(at.all.governed.governance.permits.list()).toEqual([])
  })

  test('MP-FH-005: a tool that nobody declared quarantines the whole server, also for the next daemon', async () => {
    await using state = await tempDir()
    {
      await using at = await stage({ state: state.path })
      await at.call('add')
      await eventually(() =>
        at.call('echo').then(
          () => false,
          () => true,
        ),
      )
      await expectRefusal(at, 'ERR_SURFACE_UNGOVERNED', 'MP-FH-005', 'surface/ungoverned')
      expect(at.records('server.quarantined')).toMatchObject([
        {
          server: 'fixture',
          failure: 'MP-FH-005',
          reason: expect.stringContaining('surface: dynamic') as string,
        },
      ])
      await expect(at.call('echo')).rejects.toMatchObject({
        message: expect.stringContaining('sallyport release fixture') as string,
      })
    }
    await using again = await stage({ state: state.path })
    await expectRefusal(again, 'ERR_SURFACE_UNGOVERNED', 'MP-FH-005', 'surface/ungoverned')
    expect(again.all.launches()).toBe(0)
  })

  test('MP-FH-006: a permit that fails a check at the boundary', async () => {
    await using at = await stage()
    await at.call('echo')
    const hold = { name: 'audit', server: 'fixture', tool: null, lineage: null }
    await at.all.governed.governance.add({ type: 'hold.placed', body: hold })
    await expectRefusal(at, 'ERR_PERMIT_REFUSED', 'MP-FH-006', 'permit/refused')
    expect(at.records('call.denied').at(-1)?.['reason']).toContain('checkpoint')
    await at.all.governed.governance.add({ type: 'hold.released', body: hold })
    await at.call('echo')
  })

  test('MP-FH-007: a sandbox that can’t be built', async () => {
    const launch: Launch = () => Promise.reject(new SallyportError('ERR_SANDBOX_SETUP', 'no user namespaces'))
    await using at = await stage({ launch })
    await expectRefusal(at, 'ERR_SANDBOX_SETUP', 'MP-FH-007', 'isolation/failed')
  })

  test('MP-FH-008: a violation of scope halts the server and resets the trust of every tool', async () => {
    await using at = await stage()
    await at.call('echo')
    await at.all.governed.governance.violateScope('fixture', 'it reached for another host')
    await expectRefusal(at, 'ERR_SCOPE_VIOLATION', 'MP-FH-008', 'scope/violated')
    expect(at.all.governed.governance.ledger.trust('fixture', 'add')).toMatchObject({ epoch: 1 })
  })

  test.each(['other code', 'other version'])('MP-FH-009: %s than the accepted one', async (what) => {
    await using state = await tempDir()
    {
      await using at = await stage({ state: state.path, server: { version: '2.0.0' } })
      await at.call('echo')
    }
    const older = what === 'other version' ? { server: { version: '1.9.0' } } : {}
    const other = what === 'other code' ? { code: 'other', server: { version: '2.0.0' } } : {}
    await using at = await stage({ state: state.path, ...older, ...other })
    await expectRefusal(at, 'ERR_IDENTITY_CHANGED', 'MP-FH-009', 'version/mismatch')
  })

  test('MP-FH-010: a journal that can’t be written blocks every call, until it can be', async () => {
    await using at = await stage()
    await at.call('echo')
    await settled(at)
    const { directory } = at.all.governed
    await rename(directory, `${directory}.away`)
    await expect(at.call('echo')).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
    expect(at.reached()).toEqual(['echo'])
    expect(at.events('journal/failed')).toHaveLength(1)
    expect(at.events('journal/blocked').at(-1)).toMatchObject({ detail: { failure: 'MP-FH-010' } })
    await rename(`${directory}.away`, directory)
    await at.call('echo')
    expect(at.reached()).toEqual(['echo', 'echo'])
    expect(at.events('journal/mended')).toHaveLength(1)
  })
})

describe('the invariants', () => {
  test('INV-MP-001, 002, 003: what is sent was accepted, has a permit of its identity, and its intent came first', async () => {
    await using at = await stage()
    await at.call('echo', { text: 'x' }, { lineage: 'task-7' })
    await settled(at)
    const [intent] = at.records('call.intent')
    const [outcome] = at.records('call.outcome')
    expect(intent).toMatchObject({
      identity: 'fixture/echo@1.0.0#1',
      lineage: 'task-7',
      request: '{"name":"echo","arguments":{"text":"x"}}',
    })
    expect(outcome).toMatchObject({ permit: intent?.['permit'], call: intent?.['call'], outcome: 'result' })
    const order = at.all.governed.records().map(({ type }) => type)
    expect(order.indexOf('surface.accepted')).toBeLessThan(order.indexOf('call.intent'))
    await expect(at.call('nobody')).rejects.toMatchObject({ code: 'ERR_TOOL_NOT_FOUND' })
    await expect(at.call('echo', { text: 1 })).rejects.toMatchObject({ code: 'ERR_ARGUMENTS_INVALID' })
    expect(at.reached()).toEqual(['echo'])
  })

  test('INV-MP-005: a new acceptance makes new identities', async () => {
    await using at = await stage({ server: { surface: 'dynamic' } })
    await at.call('add')
    await at.call('added')
    await eventually(() => at.records('call.outcome').length === 2)
    expect(at.records('call.intent').map(({ identity }) => identity)).toEqual([
      'fixture/add@1.0.0#1',
      'fixture/added@1.0.0#2',
    ])
  })

  test('a call that was on its way when the daemon was killed ends as unknown', async () => {
    await using state = await tempDir()
    {
      await using at = await stage({ state: state.path })
      await at.call('echo')
      const body = {
        call: 'c-lost',
        server: 'fixture',
        kind: 'tool',
        subject: 'echo',
        identity: 'i',
        permit: 'p',
      }
      await at.all.governed.governance.recorder.record('call.intent', body)
    }
    await using again = await stage({ state: state.path })
    expect(again.records('call.outcome').at(-1)).toMatchObject({ call: 'c-lost', outcome: 'unknown' })
  })
})

describe('what stood on a tool', () => {
  const asks: readonly Rule[] = [{ permission: 'mcp:*:echo', action: 'ask', where: {}, origin: 'rules[0]' }]
  const rules = [...asks, ...allowAll]

  /** Calls `echo`, and has it approved for more than once. */
  async function approved(at: Stage, scope: 'session' | 'policy'): Promise<void> {
    const { governance } = at.all.governed
    using _listening = { [Symbol.dispose]: governance.listen() }
    const made = handled(at.call('echo'))
    const { id } = await eventually(() => governance.approvals.pending()[0])
    const operator = { caller: caller(0, 'operator') } as MethodCall
    await approvalMethods({ governance, events: new EventLog() })['approvals/approve'](
      { id, scope },
      operator,
    )
    await made
    expect(governance.approvals.standing()).toMatchObject([{ scope }])
  }

  test('ends at once with a violation: approvals that stand, and questions that wait', async () => {
    await using state = await tempDir()
    {
      await using at = await stage({ rules, state: state.path })
      await approved(at, 'policy')
      await at.call('echo')
      const { governance } = at.all.governed
      using _listening = { [Symbol.dispose]: governance.listen() }
      const waits = handled(at.call('echo', { text: 'another' }))
      await eventually(() => governance.approvals.pending()[0])
      const refusal = handled(expect(waits).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' }))
      await at.call('poison')
      await expect(at.call('echo')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' })
      await refusal
      expect(governance.approvals.standing()).toEqual([])
      expect(at.records('trust.violated')).toMatchObject([
        { approvals: [expect.any(String), expect.any(String)] },
      ])
      expect(at.reached()).toEqual(['echo', 'echo', 'poison'])
    }
    await using again = await stage({ rules, state: state.path })
    expect(again.all.governed.governance.approvals.standing()).toEqual([])
  })

  test('earns trust once by a yes, however often the call that it was said of is made', async () => {
    await using state = await tempDir()
    {
      await using at = await stage({ rules, state: state.path })
      await approved(at, 'policy')
      for (let n = 0; n < 11; n++) await at.call('echo')
      await eventually(() => at.records('call.outcome').length === 12)
      expect(at.records('call.outcome').map(({ repeats }) => repeats ?? false)).toEqual([
        false,
        ...Array.from({ length: 11 }, () => true),
      ])
      expect(at.all.governed.governance.ledger.trust('fixture', 'echo').evidence).toBe(1)
    }
    await using again = await stage({ rules, state: state.path })
    expect(again.all.governed.governance.ledger.trust('fixture', 'echo').evidence).toBe(1)
  })

  test('ends with its session, where it was approved for one, and with the daemon', async () => {
    await using state = await tempDir()
    {
      await using at = await stage({ rules, state: state.path })
      await approved(at, 'session')
      await at.all.supervisor.stop(caller(), 'fixture')
      expect(at.all.governed.governance.approvals.standing()).toEqual([])
      await approved(at, 'session')
    }
    await using again = await stage({ rules, state: state.path })
    expect(again.all.governed.governance.approvals.standing()).toEqual([])
  })

  test('is gone even where that cannot be recorded', async () => {
    await using at = await stage({ rules })
    await approved(at, 'policy')
    const { governance, directory } = at.all.governed
    await rename(directory, `${directory}.away`)
    await governance.consequences.violate('fixture', ['echo'], 'MP-FH-003', 'a test').catch(() => undefined)
    expect(governance.ledger.trust('fixture', 'echo')).toMatchObject({ epoch: 1, tier: 'untrusted' })
    expect(governance.approvals.standing()).toEqual([])
    await rename(`${directory}.away`, directory)
  })

  test('ends with the server that is halted, which runs no more', async () => {
    await using at = await stage({ rules })
    await approved(at, 'policy')
    await at.all.governed.governance.consequences.quarantine('fixture', 'MP-FH-005', 'a test')
    expect(at.all.governed.governance.approvals.standing()).toEqual([])
    await eventually(() => at.all.supervisor.list(caller())[0]?.instances[0]?.state === 'quarantined')
  })
})

describe('the outcome of a call', () => {
  test('is on record when the daemon ends in the turn of the answer', async () => {
    await using dir = await tempDir()
    const server = serverSettings('rug-pull.mjs')
    const all = await governed({ servers: [server], rules: allowAll, emit: () => undefined, state: dir.path })
    const { governor } = all.policy
    const instance = newInstanceId()
    const tool = { name: 'echo', inputSchema: { type: 'object' } }
    await governor.observe({
      server,
      instance,
      tools: new Map([['echo', tool]]),
      saidVersion: null,
      rest: {},
    })
    const admission = await governor.admit(
      {
        call: newCallId(),
        kind: 'tool',
        server,
        instance,
        subject: 'echo',
        arguments: {},
        bytes: '{"name":"echo"}',
        evidence: '{"name":"echo"}',
        principal: '1000',
        peer: { uid: 1000, gid: 1000, pid: 1 },
        session: 's-1',
        lineage: null,
        id: null,
        obstacle: null,
        comparing: () => null,
        isPart: false,
      },
      waiting,
    )
    governor.settle(admission, { kind: 'result', durationMs: 1, bytes: '{}', detail: null })
    await all[Symbol.asyncDispose]()
    const [intent, outcome] = all.records().slice(-2)
    expect(intent).toMatchObject({ type: 'call.intent', body: { call: admission.call } })
    expect(outcome).toMatchObject({
      type: 'call.outcome',
      body: { call: admission.call, intent: intent?.seq },
    })
  })

  test('does not hold up the answer: without a journal to take it, the host is answered all the same', async () => {
    await using host = await attach(serverSettings('slow.mjs'))
    const { directory } = host.governed
    const params = { name: 'wait', arguments: { ms: 300 } }
    host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    await eventually(() => host.governed.records().some(({ type }) => type === 'call.intent'))
    await rename(directory, `${directory}.away`)
    expect((await host.answer(1)).error).toBeUndefined()
    await eventually(() => host.eventsOf('journal/failed').length === 1)
    await rename(`${directory}.away`, directory)
  })
})

describe('in an attached session', () => {
  const call = (id: number, tool: string, meta: object = {}) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: tool, arguments: {}, _meta: meta },
  })
  const rules = [{ permission: 'mcp:*:*', action: 'ask', where: {}, origin: 'rules[0]' }] as const

  test('a changed tool is neither shown nor called', async () => {
    await using host = await attach(serverSettings('rug-pull.mjs'))
    host.send(call(1, 'poison'))
    await host.answer(1)
    host.send(call(2, 'echo'), { jsonrpc: '2.0', id: 3, method: 'tools/list' })
    expect((await host.answer(2)).error?.data).toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' })
    const { tools } = (await host.answer(3)).result as unknown as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name)).not.toContain('echo')
    expect(tools.map(({ name }) => name)).toContain('add')
  })

  test('a call that waits for a person shows progress, and is sent once approved', async () => {
    await using host = await attach(serverSettings('rug-pull.mjs'), { rules })
    const { governance } = host.governed
    using _listening = { [Symbol.dispose]: governance.listen() }
    host.send(call(1, 'echo', { progressToken: 't' }))
    const [question] = await eventually(
      () => governance.approvals.pending().length > 0 && governance.approvals.pending(),
    )
    await eventually(() => host.lines.some((line) => line.includes('notifications/progress')))
    governance.approvals.approve(question?.id ?? '', '0', null)
    expect((await host.answer(1)).error).toBeUndefined()
  })

  test('a call that is cancelled while it waits is never sent, and never answered', async () => {
    await using host = await attach(serverSettings('rug-pull.mjs'), { rules })
    const { governance } = host.governed
    using _listening = { [Symbol.dispose]: governance.listen() }
    host.send(call(1, 'echo'))
    await eventually(() => governance.approvals.pending().length > 0)
    host.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await eventually(() => host.governed.records().some(({ type }) => type === 'call.denied'))
    host.send({ jsonrpc: '2.0', id: 2, method: 'ping' })
    await host.answer(2)
    expect(host.lines.some((line) => line.includes('"id":1'))).toBe(false)
    expect(host.governed.records().some(({ type }) => type === 'call.intent')).toBe(false)
  })

  test('without an operator who listens, ask is a denial', async () => {
    await using host = await attach(serverSettings('rug-pull.mjs'), { rules })
    host.send(call(1, 'echo'))
    expect(await host.answer(1)).toMatchObject({
      result: { isError: true, _meta: { 'sallyport/error': { data: { code: 'ERR_APPROVAL_UNAVAILABLE' } } } },
    })
  })

  test('a call that the server took with it is recorded as lost', async () => {
    await using host = await attach(serverSettings('rug-pull.mjs'))
    host.send(call(1, 'wait'))
    await eventually(() => host.governed.records().some(({ type }) => type === 'call.intent'))
    await host.session.stop('the test ends it')
    const outcomes = await eventually(() => {
      const found = host.governed.records().filter(({ type }) => type === 'call.outcome')
      return found.length > 0 && found
    })
    expect(outcomes.map(({ body }) => body)).toMatchObject([{ outcome: 'lost', subject: 'wait' }])
  })
})

test.each([
  ['tool', { one: 1, two: 1, three: 0 }],
  ['server', { one: 1, two: 1, three: 1 }],
] as const)(
  'with contaminate: %s a change of two tools at once is one violation of each that it reaches',
  async (contaminate, epochs) => {
    const server = serverSettings('echo.mjs')
    const trust = { provisionalAfter: 10, trustedAfter: 50, contaminate }
    const emit = (): void => undefined
    await using all = await governed({ servers: [server], rules: allowAll, emit, settings: { trust } })
    const listed = (description: string) =>
      new Map(
        ['one', 'two', 'three'].map((name) => [
          name,
          { name, description: name === 'three' ? 'the same' : description, inputSchema: { type: 'object' } },
        ]),
      )
    const instance = newInstanceId()
    const seen = (description: string) =>
      all.policy.governor.observe({
        server,
        instance,
        tools: listed(description),
        saidVersion: null,
        rest: {},
      })
    await seen('before')
    await seen('after')
    const { ledger } = all.governance
    const found = Object.keys(epochs).map((tool) => [tool, ledger.trust(server.name, tool)] as const)
    expect(Object.fromEntries(found.map(([tool, { epoch }]) => [tool, epoch]))).toEqual(epochs)
    for (const [tool, { history }] of found) expect(history).toHaveLength(epochs[tool as keyof typeof epochs])
    const unchanged = ledger.trust(server.name, 'three').history.map(({ detail }) => detail)
    expect(unchanged).toEqual(
      epochs.three === 0 ? [] : [expect.stringMatching(/^trust\.contaminate is server, and of one, two: /)],
    )
    expect(all.records().filter(({ type }) => type === 'trust.violated')).toHaveLength(
      Object.values(epochs).filter(Boolean).length,
    )
  },
)

test('a credential that went where it may not, which may be any tool’s doing, is one violation of each', async () => {
  const server = serverSettings('echo.mjs')
  const trust = { provisionalAfter: 10, trustedAfter: 50, contaminate: 'server' } as const
  const emit = (): void => undefined
  await using all = await governed({ servers: [server], rules: allowAll, emit, settings: { trust } })
  const tools = new Map(['one', 'two'].map((name) => [name, { name, inputSchema: { type: 'object' } }]))
  await all.policy.governor.observe({ server, instance: newInstanceId(), tools, saidVersion: null, rest: {} })
  await recordOf(() => all.governance, emit).distrust(server.name, 'a test')
  for (const tool of tools.keys())
    expect(all.governance.ledger.trust(server.name, tool)).toMatchObject({ epoch: 1 })
})

test('an accepted tool beyond what is looked at is not called, is told of, and is neither changed nor accepted anew', async () => {
  await using state = await tempDir()
  const life = async (perServer: number) => {
    const server = serverSettings('rug-pull.mjs', { version: '1', surface: 'dynamic' })
    const words = { naming: '<server>_<tool>', descriptionList: 200, descriptionFull: 2048 } as const
    const tools = { ...words, perServer, searchThreshold: 20, searchMatches: 10 }
    return superviseAll([server], { codeOf: () => 'code', state: state.path, settings: { tools } })
  }
  const called = (all: Supervised) =>
    all.supervisor.call(
      caller(),
      {
        server: 'fixture',
        tool: 'add',
        arguments: new RawJson('{}'),
        timeoutMs: null,
        generation: null,
        lineage: null,
      },
      waiting,
    )
  {
    await using all = await life(100)
    expect((await called(all)).metadata.identity).toBe('fixture/add@1#1')
  }
  {
    await using all = await life(2)
    await expect(called(all)).rejects.toMatchObject({
      code: 'ERR_TOOL_NOT_FOUND',
      message: expect.stringContaining('tools.per_server') as string,
    })
    expect(all.events.find(({ type }) => type === 'surface/unaccepted')?.detail).toMatchObject({
      tools: ['add', 'wait'],
      reason: expect.stringContaining('raise tools.per_server') as string,
    })
    expect(all.governed.governance.ledger.trust('fixture', 'add')).toMatchObject({ epoch: 0, evidence: 1 })
  }
  await using all = await life(100)
  expect((await called(all)).metadata.identity).toBe('fixture/add@1#1')
  const types = all.governed.records().map(({ type }) => type)
  expect(types.filter((type) => /surface|violat|quarantin/.test(type))).toEqual(['surface.accepted'])
})
