// What a tool earns and loses, what ends with it, and what is on record of it: over both sockets, through kills and restarts.
import { cpSync, existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import type { AuditRecord, PendingApproval, TrustView } from '../../src/rpc/governed.ts'
import { attached } from '../support/attached.ts'
import { configOf, daemon, fixture, place, serve } from '../support/daemon.ts'
import type { Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { clockStood } from '../support/clock-stood.ts'

const ask = [{ permission: 'mcp:*:*', action: 'ask' }]
const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
const rugPull = (more: object = {}): object => fixture('rug-pull', { surface: 'dynamic', ...more })

const call = (client: Client, server: string, tool = 'echo', args: Record<string, unknown> = { text: 'a' }) =>
  client.call('tools/call', { server, tool, arguments: args })

const records = async (client: Client, type: string): Promise<readonly AuditRecord[]> =>
  (await client.call('audit/query', { type, limit: 1000 })).records

const trust = async (client: Client, server: string, tool: string): Promise<TrustView | undefined> =>
  (await client.call('trust/list', { server })).trust.find((one) => one.tool === tool)

/** An operator who answers each question, until disposed. */
async function answering(client: Client, answer: (question: PendingApproval) => Promise<unknown> | null) {
  const ended = new AbortController()
  const asked: PendingApproval[] = []
  const watched = (async () => {
    for await (const { method, params } of client.approvals({ signal: ended.signal }))
      if (method === 'approvals/asked') {
        asked.push(params)
        await answer(params)
      }
  })().catch(() => undefined) // the daemon may be killed meanwhile
  await eventually(async () => (await client.call('approvals/list', {})).listeners > 0, 5000)
  return {
    asked,
    async [Symbol.asyncDispose]() {
      ended.abort()
      await watched
    },
  }
}

/** Kills the daemon, lets `change` have its way, and starts another. */
async function again(at: Place, change: () => void = () => undefined): Promise<Client> {
  // Its doors open before it writes down who it is, and they are open until the kernel has ended all of it.
  const record = await eventually(
    () => readFileSync(join(at.runtimeDir, 'host', 'daemon.json'), 'utf8'),
    5000,
  )
  const { pid } = JSON.parse(record) as { pid: number }
  process.kill(pid, 'SIGKILL')
  await eventually(() => !existsSync(`/proc/${pid}`), 5000)
  change()
  at.start(['serve'])
  return eventually(() => at.connect('operator').catch(() => null), 15_000)
}

/** Whether a snapshot stands in the folder, whole. */
const isKept = (snapshots: string): boolean =>
  existsSync(snapshots) && readdirSync(snapshots).some((name) => name.endsWith('.json'))

describe('trust', () => {
  test('a tool of an untrusted server is asked for until it has earned its own trust, then not; a change takes it all', async () => {
    const thresholds = { provisional_after: 3, trusted_after: 5 }
    await using at = await daemon(
      configOf({ pull: rugPull({ trust: 'untrusted', tools: { allow: ['*'] } }) }, { trust: thresholds }),
    )
    await using operator = await at.connect('operator')
    await using watch = await answering(operator, ({ id }) => operator.call('approvals/approve', { id }))
    const tiers: unknown[] = []
    const shown: unknown[] = []
    for (let n = 1; n <= 6; n += 1) {
      await call(operator, 'pull', 'echo', { text: String(n) })
      await eventually(async () => (await trust(operator, 'pull', 'echo'))?.evidence === n, 5000)
      tiers.push((await trust(operator, 'pull', 'echo'))?.tier)
      const { tools } = await operator.call('tools/list', { server: 'pull' })
      const found = await operator.call('tools/search', { query: 'echo', server: 'pull' })
      const all = [...tools, ...found.tools].filter(({ tool }) => tool === 'echo')
      const { decision } = await operator.call('tools/describe', { server: 'pull', tool: 'echo' })
      shown.push([...new Set([decision, ...all.map((view) => view.decision)])].join())
    }
    expect(shown).toEqual(['ask', 'ask', 'allow', 'allow', 'allow', 'allow'])
    expect(tiers).toEqual(['untrusted', 'untrusted', 'provisional', 'provisional', 'trusted', 'trusted'])
    expect(watch.asked).toHaveLength(3)
    expect(JSON.parse((await at.run(['trust', 'list', '--json'])).stdout)).toMatchObject({
      trust: expect.arrayContaining([
        expect.objectContaining({
          identity: 'pull/echo@0#1',
          tier: 'trusted',
          evidence: 6,
          confidence: 1,
          epoch: 0,
        }),
      ]),
    })
    await call(operator, 'pull', 'poison', {})
    await eventually(async () => (await trust(operator, 'pull', 'echo'))?.epoch === 1, 15_000)
    expect(await trust(operator, 'pull', 'echo')).toMatchObject({
      tier: 'untrusted',
      evidence: 0,
      confidence: 0.5,
      violations: [{ failure: 'MP-FH-003' }],
    })
    expect(await trust(operator, 'pull', 'add')).toMatchObject({ epoch: 0 })
    await operator.call('trust/reset', { server: 'pull', tool: 'echo', reason: 'looked at' })
    const after = await again(at)
    expect(await trust(after, 'pull', 'echo')).toMatchObject({
      epoch: 2,
      confidence: 1,
      violations: [{ failure: 'MP-FH-003' }],
    })
    await after[Symbol.asyncDispose]()
  })

  test('is lost for what a session’s server changes, though nobody calls anything more', async () => {
    await using at = await daemon(configOf({ pull: rugPull() }))
    await using operator = await at.connect('operator')
    await using host = await attached(at, 'pull')
    await host.call('echo', { text: 'a' })
    await host.call('poison') // at once, when it was just looked at
    await eventually(async () => (await trust(operator, 'pull', 'echo'))?.epoch === 1, 15_000)
  })

  test.each(['tool', 'server'] as const)(
    'with contaminate: %s a violation reaches just that far',
    async (contaminate) => {
      await using at = await daemon(configOf({ pull: rugPull() }, { trust: { contaminate } }))
      await using operator = await at.connect('operator')
      await call(operator, 'pull')
      await call(operator, 'pull', 'poison', {})
      await eventually(async () => (await trust(operator, 'pull', 'echo'))?.epoch === 1, 15_000)
      const epochs = (await operator.call('trust/list', { server: 'pull' })).trust
        .map(({ tool, epoch }) => `${tool} ${epoch}`)
        .sort()
      expect(epochs).toEqual(
        contaminate === 'tool'
          ? ['add 0', 'echo 1', 'poison 0', 'wait 0']
          : ['add 1', 'echo 1', 'poison 1', 'wait 1'],
      )
    },
  )
})

describe('an approval that stands', () => {
  /** A daemon with a standing approval for pull/echo, and an operator who answers no question any more. */
  async function standing() {
    const rules = [{ permission: 'mcp:pull:poison', action: 'allow' }, ...ask]
    const at = await place()
    const folder = join(at.folder, 'code')
    cpSync(fixtures, folder, { recursive: true })
    const config = (more: object = {}): void =>
      writeFileSync(
        at.config,
        JSON.stringify(
          configOf({ pull: rugPull({ package: { source: folder, target: '/app' }, ...more }) }, { rules }),
        ),
      )
    config()
    const { client: operator } = await serve(at)
    {
      await using _watch = await answering(operator, ({ id }) =>
        operator.call('approvals/approve', { id, scope: 'policy' }),
      )
      await call(operator, 'pull')
    }
    await call(operator, 'pull') // nobody watches, and it passes
    return {
      at,
      operator,
      config,
      folder,
      async [Symbol.asyncDispose]() {
        await operator[Symbol.asyncDispose]()
        await at[Symbol.asyncDispose]()
      },
    }
  }
  const isAskedFor = async (client: Client): Promise<void> => {
    expect((await client.call('approvals/list', {})).standing).toEqual([])
    await expect(call(client, 'pull')).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
  }

  test('is on record before it has effect, and outlives a kill', async () => {
    await using stage = await standing()
    const order = (await stage.operator.call('audit/query', { from: 'oldest', limit: 1000 })).records.map(
      ({ type }) => type,
    )
    expect(order.indexOf('approval.standing')).toBe(order.indexOf('approval.granted') + 1)
    expect(order.indexOf('approval.standing')).toBeLessThan(order.indexOf('approval.used'))
    const after = await again(stage.at)
    await call(after, 'pull')
    await after[Symbol.asyncDispose]()
  })

  test('is good for the same request, whatever number it has, and not for the same arguments in another', async () => {
    await using at = await daemon(configOf({ plain: fixture('echo') }, { rules: ask }))
    const operator = at.client
    await using session = await attached(at, 'plain')
    const request = (more: object) => ({ name: 'echo', arguments: { text: 'a' }, ...more })
    const isCalled = async (params: object): Promise<boolean> =>
      (await session.ask('tools/call', params)).error === undefined
    {
      const scope = 'session'
      await using _watch = await answering(operator, ({ id }) =>
        operator.call('approvals/approve', { id, scope }),
      )
      expect(await isCalled(request({ _meta: { progressToken: 1 } }))).toBe(true)
    }
    await eventually(async () => (await operator.call('approvals/list', {})).listeners === 0)
    expect(await isCalled(request({ _meta: { progressToken: 2 } }))).toBe(true)
    expect(await isCalled(request({ _meta: { progressToken: 3, mode: 'force' } }))).toBe(false)
    expect(await isCalled(request({ _meta: { progressToken: 4 }, task: { ttl: 1000 } }))).toBe(false)
    expect(await isCalled(request({}))).toBe(false)
  })

  test('ends with a violation of its tool, also for whoever accepts the tool anew', async () => {
    await using stage = await standing()
    const { operator } = stage
    await call(operator, 'pull', 'poison', {})
    await eventually(async () => (await operator.call('approvals/list', {})).standing.length === 0, 15_000)
    await expect(call(operator, 'pull')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' })
    await operator.call('servers/stop', { server: 'pull' })
    await operator.call('declarations/accept', { server: 'pull' })
    await isAskedFor(operator)
  })

  test('of what is no tool ends where its server is halted for what it did, and stays ended through a kill', async () => {
    const rules = [
      { permission: 'mcp:*:resources/read', action: 'ask' },
      { permission: 'mcp:*:*', action: 'allow' },
    ]
    const grown = fixture('changes', { args: ['/app/changes.mjs', '/tmp/reached'] })
    await using at = await daemon(configOf({ grown }, { rules }))
    await using operator = await at.connect('operator')
    const host = await attached(at, 'grown')
    const read = () => host.ask('resources/read', { uri: 'note:///a' })
    {
      await using _watch = await answering(operator, ({ id }) =>
        operator.call('approvals/approve', { id, scope: 'policy' }),
      )
      await read()
    }
    expect(await read()).not.toHaveProperty('error') // nobody watches, and it passes
    await host.call('change', { list: 'tools', patch: { name: 'added' } })
    expect(await read()).toMatchObject({ error: { data: { code: 'ERR_SURFACE_UNGOVERNED' } } })
    await host[Symbol.asyncDispose]()
    expect((await operator.call('approvals/list', {})).standing).toEqual([])
    const after = await again(at)
    await after.call('servers/release', { name: 'grown' })
    expect((await after.call('approvals/list', {})).standing).toEqual([])
    await after[Symbol.asyncDispose]()
  })

  test('ends, and a question with it, where more of its server is accepted on the operator’s standing word', async () => {
    const rules = [
      { permission: 'mcp:pull:echo', action: 'ask' },
      { permission: 'mcp:*:*', action: 'allow' },
    ]
    await using at = await daemon(configOf({ pull: rugPull() }, { rules }))
    await using operator = await at.connect('operator')
    await using watch = await answering(operator, ({ id, text }) =>
      text.includes('stands') ? operator.call('approvals/approve', { id, scope: 'policy' }) : null,
    )
    await call(operator, 'pull', 'echo', { text: 'stands' })
    const waiting = call(operator, 'pull', 'echo', { text: 'waits' })
    const refused = expect(waiting).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
    await eventually(() => watch.asked.length === 2, 5000)
    await call(operator, 'pull', 'add', {})
    await refused
    expect((await operator.call('approvals/list', {})).standing).toEqual([])
  })

  test('ends where an operator takes it back, and stays ended through a kill', async () => {
    await using stage = await standing()
    const [one] = (await stage.operator.call('approvals/list', {})).standing
    await stage.operator.call('approvals/deny', { id: one?.id ?? '' })
    const after = await again(stage.at)
    await isAskedFor(after)
    await after[Symbol.asyncDispose]()
  })

  test.each([
    ['another version', { version: '2' }, ''],
    ['another package', {}, '\n// changed\n'],
  ] as const)('is none of %s, nor of the old one that comes back', async (_title, more, appended) => {
    await using stage = await standing()
    const script = join(stage.folder, 'rug-pull.mjs')
    const text = readFileSync(script, 'utf8')
    const changed = await again(stage.at, () => {
      stage.config(more)
      writeFileSync(script, text + appended)
    })
    await expect(call(changed, 'pull')).rejects.toMatchObject({ code: 'ERR_IDENTITY_CHANGED' })
    await changed.call('declarations/accept', { server: 'pull' })
    await isAskedFor(changed)
    await changed[Symbol.asyncDispose]()
    const back = await again(stage.at, () => {
      stage.config()
      writeFileSync(script, text)
    })
    await expect(call(back, 'pull')).rejects.toMatchObject({ code: 'ERR_IDENTITY_CHANGED' })
    await back.call('declarations/accept', { server: 'pull' })
    await isAskedFor(back)
    await back[Symbol.asyncDispose]()
  })

  test('a question that waits ends when its tool changes, whatever an operator says then', async () => {
    const rules = [{ permission: 'mcp:pull:poison', action: 'allow' }, ...ask]
    await using at = await daemon(configOf({ pull: rugPull() }, { rules }))
    await using operator = await at.connect('operator')
    await using watch = await answering(operator, () => null)
    await call(operator, 'pull', 'poison', { not: 'yet' }).catch(() => undefined)
    await operator.call('servers/stop', { server: 'pull' })
    await operator.call('declarations/accept', { server: 'pull' })
    const waiting = call(operator, 'pull', 'add', {})
    const refused = expect(waiting).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_APPROVAL/) })
    await eventually(() => watch.asked.length > 0, 5000)
    await operator.call('declarations/accept', { server: 'pull' })
    await refused
    await expect(operator.call('approvals/approve', { id: watch.asked[0]?.id ?? '' })).rejects.toMatchObject({
      code: 'ERR_APPROVAL_NOT_FOUND',
    })
  })
})

describe('what is accepted on the operator’s standing word', () => {
  test('is never what an operator left out', async () => {
    await using at = await daemon(configOf({ pull: rugPull() }))
    await using operator = await at.connect('operator')
    await operator.call('declarations/accept', { server: 'pull', tools: ['echo', 'add'] })
    await call(operator, 'pull', 'add', {})
    await call(operator, 'pull', 'added', {}) // which is new
    await operator.call('servers/stop', { server: 'pull' }) // and looked at again
    await call(operator, 'pull')
    for (const tool of ['poison', 'wait'])
      await expect(call(operator, 'pull', tool, {})).rejects.toMatchObject({
        code: 'ERR_DECLARATION_MISSING',
      })
  })

  test('is no more than tools.per_server, however often a server lists other tools', async () => {
    const churning = fixture('changes', { args: ['/app/changes.mjs', '/tmp/reached'], surface: 'dynamic' })
    await using at = await daemon(configOf({ churning }, { tools: { per_server: 4 } }))
    await using operator = await at.connect('operator')
    await using host = await attached(at, 'churning')
    const made: string[] = []
    for (const name of ['a', 'b', 'c', 'd']) {
      await host.call('change', { list: 'tools', patch: { name } })
      made.push((await host.call(name)).error?.data.code ?? 'done')
    }
    expect(made).toEqual(['done', 'done', 'ERR_DECLARATION_MISSING', 'ERR_DECLARATION_MISSING'])
    const accepted = await records(operator, 'surface.accepted')
    expect(accepted.map(({ body }) => (body as { tools: unknown[] }).tools.length)).toEqual([2, 3, 4])
  })
})

describe('what hosts launch', () => {
  const dynamic = { enabled: true, profile: 'node', tools: { allow: ['echo'] } }
  const launch = (client: Client, name: string, target = '/app', ...more: string[]) =>
    client.call('servers/launch', {
      name,
      command: 'node',
      args: [`${target}/echo.mjs`, ...more],
      package: { source: fixtures, target },
    })

  test('stands under the operator’s dynamic record, which is written when it changes', async () => {
    await using at = await daemon(configOf({}, { dynamic }))
    await using host = await at.connect('host')
    await using operator = await at.connect('operator')
    await launch(host, 'mine')
    const [record, ...others] = await records(operator, 'dynamic.applied')
    expect(others).toEqual([])
    expect(record?.body).toMatchObject({
      enabled: true,
      profile: 'node',
      acceptance: 'first-use',
      allow: ['echo'],
    })
    const [launched] = await records(operator, 'server.launched')
    expect(launched?.body).toMatchObject({
      server: 'mine',
      under: { seq: record?.seq, digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
      peer: { uid: process.getuid?.(), gid: process.getgid?.(), pid: process.pid },
    })
    const same = await again(at)
    expect(await records(same, 'dynamic.applied')).toHaveLength(1)
    await same[Symbol.asyncDispose]()
    const other = await again(at, () =>
      writeFileSync(at.config, JSON.stringify(configOf({}, { dynamic, max_dynamic_servers: 3 }))),
    )
    expect(await records(other, 'dynamic.applied')).toHaveLength(2)
    expect(await records(other, 'config.applied')).toHaveLength(1)
    await other[Symbol.asyncDispose]()
  })

  test('leaves nothing to what has its name in the next life of the daemon', async () => {
    const trusting = { dynamic: { ...dynamic, trust: 'trusted' } }
    await using at = await daemon(configOf({}, trusting))
    await using host = await at.connect('host')
    await launch(host, 'mine')
    await call(host, 'mine', 'echo', {})
    const same = fixture('echo', { acceptance: 'manual' })
    await using after = await again(at, () =>
      writeFileSync(at.config, JSON.stringify(configOf({ mine: same }, trusting))),
    )
    await expect(call(after, 'mine', 'echo', {})).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
    // Its tools may not have been looked at anew yet: then it has no trust at all.
    const { tier, evidence } = (await trust(after, 'mine', 'echo')) ?? { tier: 'untrusted', evidence: 0 }
    expect({ tier, evidence }).toEqual({ tier: 'untrusted', evidence: 0 })
    expect((await records(after, 'server.removed')).at(-1)?.body).toMatchObject({
      server: 'mine',
      reason: expect.stringContaining('gone with the daemon'),
    })
    await after.call('declarations/accept', { server: 'mine' })
    await call(after, 'mine', 'echo', {})
    await using last = await again(at)
    await call(last, 'mine', 'echo', {}) // and the operator’s word for it stays
  })

  test('does not get out of quarantine under another name, in another place, or with more arguments', async () => {
    await using at = await daemon(configOf({}, { dynamic }))
    await using host = await at.connect('host')
    await using operator = await at.connect('operator')
    await launch(host, 'bad')
    await call(host, 'bad')
    await operator.call('servers/quarantine', { server: 'bad', reason: 'it lied' })
    await host.call('servers/remove', { server: 'bad' })
    const refusal = { code: 'ERR_DYNAMIC_REFUSED', message: expect.stringContaining('it lied') }
    await expect(launch(host, 'bad')).rejects.toMatchObject(refusal)
    await expect(launch(host, 'good')).rejects.toMatchObject({
      ...refusal,
      message: expect.stringMatching(/the same thing, as bad, is quarantined .*sallyport release bad/),
    })
    await expect(launch(host, 'good', '/elsewhere')).rejects.toMatchObject(refusal)
    await expect(launch(host, 'good', '/app', 'more')).rejects.toMatchObject(refusal)
    const after = await again(at)
    await using later = await at.connect('host')
    await expect(launch(later, 'good')).rejects.toMatchObject(refusal)
    await after.call('servers/release', { name: 'bad' })
    await launch(later, 'good')
    expect((await call(later, 'good', 'echo', {})).type).toBe('output')
    await after[Symbol.asyncDispose]()
  })
})

describe('the record', () => {
  test('says in every line how far hosts are separate, and of every act whose it was and from where', async () => {
    const token = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'
    await using at = await daemon(configOf({ echo: fixture('echo') }))
    await using host = await at.connect('host')
    await using operator = await at.connect('operator')
    expect(host.hello.separation).toBe('none')
    await call(host, 'echo', 'echo', { token })
    await operator.call('servers/hold', { server: 'echo', reason: 'lunch' })
    await expect(call(host, 'echo')).rejects.toMatchObject({ code: 'ERR_PERMIT_REFUSED' })
    await operator.call('servers/release', { name: 'echo' })
    await operator.call('trust/reset', { server: 'echo', tool: 'echo' })
    await operator.call('permits/revoke', { server: 'echo' })
    await operator.call('servers/quarantine', { server: 'echo' })
    await operator.call('servers/release', { name: 'echo' })
    await operator.call('declarations/accept', { server: 'echo' })
    const all = (await operator.call('audit/query', { from: 'oldest', limit: 1000 })).records
    for (const { type, body } of all) expect({ type, body }).toMatchObject({ body: { separation: 'none' } })
    const peer = { uid: process.getuid?.(), gid: process.getgid?.(), pid: process.pid }
    for (const type of [
      'call.intent',
      'call.outcome',
      'call.denied',
      'hold.placed',
      'hold.released',
      'trust.reset',
      'permit.revoked',
      'server.quarantined',
      'server.released',
    ])
      expect(all.find((one) => one.type === type)).toMatchObject({ body: { peer } })
    expect(all.findLast(({ type }) => type === 'surface.accepted')).toMatchObject({ body: { peer } })
    const intent = all.find(({ type }) => type === 'call.intent')
    expect(intent?.body).toMatchObject({ reason: expect.stringContaining('allows'), redacted: 1 })
    expect(JSON.stringify(all)).not.toContain(token)
  })

  test('a declaration of what the sandbox does not grant is refused, with the class and the grant', async () => {
    await using at = await daemon(configOf({ echo: fixture('echo', { acceptance: 'manual' }) }))
    await using operator = await at.connect('operator')
    const { declaration } = await operator.call('servers/declare', { server: 'echo' })
    const tools = {
      ...declaration.tools,
      echo: { ...declaration.tools['echo'], side_effects: ['read', 'network'] },
    }
    await expect(
      operator.call('declarations/accept', {
        server: 'echo',
        declaration: { ...declaration, tools },
      }),
    ).rejects.toMatchObject({
      code: 'ERR_CONFIG_INVALID',
      message: expect.stringMatching(/side_effects\[1\]: got network, .*its entry has no egress/),
    })
  })
})

describe('the journal of a daemon', () => {
  // An outcome is recorded behind its answer: a kill right there leaves it unknown.
  const calledOnce = async (client: Client): Promise<void> => {
    await call(client, 'echo')
    await eventually(async () => (await trust(client, 'echo', 'echo'))?.evidence === 1, 5000)
  }

  test('lets go of old segments, comes to the same without them, and says where it begins', async () => {
    const config = configOf({ echo: fixture('echo') }, { journal: { keep_days: 30 } })
    await using at = await daemon(config)
    const journal = join(at.stateDir, 'journal')
    const snapshots = join(journal, 'snapshots')
    const segments = (): readonly string[] => readdirSync(journal).filter((name) => name.endsWith('.jsonl'))
    const aged = (): void => {
      for (const name of segments()) utimesSync(join(journal, name), 1, 1)
    }
    await calledOnce(at.client)
    await at.client.call('servers/hold', { server: 'echo', name: 'lunch' })
    await using _second = await again(at, aged)
    await eventually(() => isKept(snapshots), 5000)
    await using last = await again(at, () => {
      aged()
      clockStood(join(at.stateDir, 'clock'))
    })
    await eventually(() => !segments().includes('00000001.jsonl'), 5000)
    expect(await last.call('servers/holds', {})).toMatchObject({ holds: [{ name: 'lunch' }] })
    expect(await trust(last, 'echo', 'echo')).toMatchObject({ evidence: 1 })
    expect(await records(last, 'journal.pruned')).not.toEqual([])
    const verified = await at.run(['audit', 'verify'])
    expect(verified).toMatchObject({ status: 0, stdout: expect.stringMatching(/begins +at anchor \d+:/) })
    expect(await last.call('audit/verify', {})).toMatchObject({ ok: true, flaw: null })
  })

  test('is folded whole where its snapshots were tampered with, and says so', async () => {
    await using at = await daemon(configOf({ echo: fixture('echo') }))
    const snapshots = join(at.stateDir, 'journal', 'snapshots')
    await calledOnce(at.client)
    await (await again(at))[Symbol.asyncDispose]()
    await eventually(() => isKept(snapshots), 5000)
    await using last = await again(at, () => {
      for (const name of readdirSync(snapshots)) {
        const text = readFileSync(join(snapshots, name), 'utf8')
        writeFileSync(join(snapshots, name), text.replace('"evidence":1', '"evidence":99'))
      }
    })
    expect(await trust(last, 'echo', 'echo')).toMatchObject({ evidence: 1, tier: 'untrusted' })
    expect(await records(last, 'snapshot.refused')).toMatchObject([
      { body: { reason: expect.stringContaining('key') } },
    ])
  })

  test('is taken up where its end was cut off, and says so', async () => {
    await using at = await daemon(configOf({ echo: fixture('echo') }))
    const directory = join(at.stateDir, 'journal')
    await calledOnce(at.client)
    await eventually(() => /"seq":(?!1\b)/.test(readFileSync(`${directory}.head`, 'utf8')), 5000)
    await using last = await again(at, () => {
      const segment = join(directory, '00000001.jsonl')
      writeFileSync(segment, readFileSync(segment, 'utf8').replace(/(?<=\n)[^]*/, ''))
    })
    expect(await records(last, 'journal.shortened')).toMatchObject([
      { body: { reason: expect.stringContaining('cut off') } },
    ])
    expect(await trust(last, 'echo', 'echo')).toBeUndefined()
  })
})
