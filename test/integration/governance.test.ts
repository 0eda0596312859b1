// What a tool earns and loses, what ends with it, and what is on record of it: over both sockets, through kills and restarts.
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import type { AuditRecord, TrustView } from '../../src/rpc/governed.ts'
import { attached } from '../support/attached.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { clockStood } from '../support/clock-stood.ts'
import { handled } from '../support/handled.ts'
import { refusalOf } from '../support/raw-caller.ts'
import { sharedDaemon } from '../support/shared-daemon.ts'
import { watching, yes } from '../support/watching.ts'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
const rugPull = (more: object = {}): object => fixture('rug-pull', { surface: 'dynamic', ...more })
const changes = (more: object = {}): object =>
  fixture('changes', { args: ['/app/changes.mjs', '/tmp/reached'], ...more })

/** Each test has servers of its own in it; all calls of those that are called `asked-…` are asked for, but `poison`. */
const configured = (further: Readonly<Record<string, object>> = {}): object =>
  configOf(
    {
      earns: rugPull({ trust: 'untrusted', tools: { allow: ['*'] } }),
      attached: rugPull(),
      spreads: rugPull(),
      'asked-outlives': rugPull(),
      'asked-plain': fixture('echo'),
      'asked-violates': rugPull(),
      grown: changes(),
      grows: rugPull(),
      'asked-withdrawn': rugPull(),
      'asked-waits': rugPull(),
      partly: rugPull(),
      churning: changes({ surface: 'dynamic' }),
      recorded: fixture('echo'),
      declared: fixture('echo', { acceptance: 'manual' }),
      tampered: fixture('echo'),
      cut: fixture('echo'),
      ...further,
    },
    {
      rules: [
        { permission: 'mcp:*:poison', action: 'allow' },
        { permission: 'mcp:asked-*:*', action: 'ask' },
        { permission: 'mcp:grown:resources/read', action: 'ask' },
        { permission: 'mcp:grows:echo', action: 'ask' },
        { permission: 'mcp:*:*', action: 'allow' },
      ],
      trust: { provisional_after: 3, trusted_after: 5 },
      tools: { per_server: 5 },
      dynamic: { enabled: true, profile: 'node', tools: { allow: ['echo'] }, trust: 'trusted' },
    },
  )
const shared = sharedDaemon(configured())

const call = (client: Client, server: string, tool = 'echo', args: Record<string, unknown> = { text: 'a' }) =>
  client.call('tools/call', { server, tool, arguments: args })

const records = async (client: Client, type: string, server?: string): Promise<readonly AuditRecord[]> =>
  (await client.call('audit/query', { type, limit: 1000, ...(server !== undefined && { server }) })).records

const standingOf = async (client: Client, server: string) =>
  (await client.call('approvals/list', {})).standing.filter(({ identity }) =>
    identity.startsWith(`${server}/`),
  )

const trust = async (client: Client, server: string, tool: string): Promise<TrustView | undefined> =>
  (await client.call('trust/list', { server })).trust.find((one) => one.tool === tool)

/** Whether a snapshot stands in the folder, whole, that says this. */
const isKept = (snapshots: string, part = ''): boolean =>
  existsSync(snapshots) &&
  readdirSync(snapshots).some(
    (name) => name.endsWith('.json') && readFileSync(join(snapshots, name), 'utf8').includes(part),
  )

describe('trust', () => {
  test('a tool of an untrusted server is asked for until it has earned its own trust, then not; a change takes it all', async () => {
    const at = await shared.living()
    const operator = at.client
    await using watch = await watching(operator, yes(operator), { mayEnd: true })
    const tiers: unknown[] = []
    const shown: unknown[] = []
    for (let n = 1; n <= 6; n += 1) {
      await call(operator, 'earns', 'echo', { text: String(n) })
      await eventually(async () => (await trust(operator, 'earns', 'echo'))?.evidence === n)
      tiers.push((await trust(operator, 'earns', 'echo'))?.tier)
      const { tools } = await operator.call('tools/list', { server: 'earns' })
      const found = await operator.call('tools/search', { query: 'echo', server: 'earns' })
      const all = [...tools, ...found.tools].filter(({ tool }) => tool === 'echo')
      const { decision } = await operator.call('tools/describe', { server: 'earns', tool: 'echo' })
      shown.push([...new Set([decision, ...all.map((view) => view.decision)])].join())
    }
    expect(shown).toEqual(['ask', 'ask', 'allow', 'allow', 'allow', 'allow'])
    expect(tiers).toEqual(['untrusted', 'untrusted', 'provisional', 'provisional', 'trusted', 'trusted'])
    expect(watch.asked).toHaveLength(3)
    expect(JSON.parse((await at.run(['trust', 'list', '--json'])).stdout)).toMatchObject({
      trust: expect.arrayContaining([
        expect.objectContaining({
          identity: 'earns/echo@0#1',
          tier: 'trusted',
          evidence: 6,
          confidence: 1,
          epoch: 0,
        }),
      ]),
    })
    await call(operator, 'earns', 'poison', {})
    await eventually(async () => (await trust(operator, 'earns', 'echo'))?.epoch === 1)
    expect(await trust(operator, 'earns', 'echo')).toMatchObject({
      tier: 'untrusted',
      evidence: 0,
      confidence: 0.5,
      violations: [{ failure: 'MP-FH-003' }],
    })
    expect(await trust(operator, 'earns', 'add')).toMatchObject({ epoch: 0 })
    await operator.call('trust/reset', { server: 'earns', tool: 'echo', reason: 'looked at' })
    const { client: after } = await shared.again()
    expect(await trust(after, 'earns', 'echo')).toMatchObject({
      epoch: 2,
      confidence: 1,
      violations: [{ failure: 'MP-FH-003' }],
    })
  })

  test('is lost for what a session’s server changes, though nobody calls anything more', async () => {
    const at = await shared.living()
    await using host = await attached(at, 'attached')
    await host.call('echo', { text: 'a' })
    await host.call('poison') // at once, when it was just looked at
    await eventually(async () => (await trust(at.client, 'attached', 'echo'))?.epoch === 1)
  })

  test.each(['tool', 'server'] as const)(
    'with contaminate: %s a violation reaches just that far',
    async (contaminate) => {
      const config = configOf({ spreads: rugPull() }, { trust: { contaminate } })
      await using own = contaminate === 'tool' ? null : await daemon(config) // that is what it is unless stated
      const { client: operator } = own ?? (await shared.living())
      await call(operator, 'spreads')
      await call(operator, 'spreads', 'poison', {})
      await eventually(async () => (await trust(operator, 'spreads', 'echo'))?.epoch === 1)
      const epochs = (await operator.call('trust/list', { server: 'spreads' })).trust
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
  /** A standing approval for this server’s echo; the operator answers no question any more. */
  async function standing(server: string): Promise<Client> {
    const { client: operator } = await shared.living()
    {
      await using _watch = await watching(operator, yes(operator, 'policy'))
      await call(operator, server)
    }
    await call(operator, server) // nobody watches, and it passes
    return operator
  }
  const isAskedFor = async (client: Client, server: string): Promise<void> => {
    expect(await standingOf(client, server), server).toEqual([])
    await expect(call(client, server), server).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
  }

  test('is on record before it has effect, and outlives a kill', async () => {
    const operator = await standing('asked-outlives')
    const order = (
      await operator.call('audit/query', { server: 'asked-outlives', from: 'oldest', limit: 1000 })
    ).records.map(({ type }) => type)
    expect(order.indexOf('approval.standing')).toBe(order.indexOf('approval.granted') + 1)
    expect(order.indexOf('approval.standing')).toBeLessThan(order.indexOf('approval.used'))
    const { client: after } = await shared.again()
    await call(after, 'asked-outlives')
  })

  test('is good for the same request, whatever number it has, and not for the same arguments in another', async () => {
    const at = await shared.living()
    const operator = at.client
    await using session = await attached(at, 'asked-plain')
    const request = (more: object) => ({ name: 'echo', arguments: { text: 'a' }, ...more })
    const isCalled = async (params: object): Promise<boolean> =>
      refusalOf(await session.ask('tools/call', params)) === undefined
    {
      await using _watch = await watching(operator, yes(operator, 'session'))
      expect(await isCalled(request({ _meta: { progressToken: 1 } }))).toBe(true)
    }
    expect(await isCalled(request({ _meta: { progressToken: 2 } }))).toBe(true)
    expect(await isCalled(request({ _meta: { progressToken: 3, mode: 'force' } }))).toBe(false)
    expect(await isCalled(request({ _meta: { progressToken: 4 }, task: { ttl: 1000 } }))).toBe(false)
    expect(await isCalled(request({}))).toBe(false)
  })

  test('ends with a violation of its tool, also for whoever accepts the tool anew', async () => {
    const operator = await standing('asked-violates')
    await call(operator, 'asked-violates', 'poison', {})
    await eventually(async () => (await standingOf(operator, 'asked-violates')).length === 0)
    await expect(call(operator, 'asked-violates')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' })
    await operator.call('servers/stop', { server: 'asked-violates' })
    await operator.call('declarations/accept', { server: 'asked-violates' })
    await isAskedFor(operator, 'asked-violates')
  })

  test('of what is no tool ends where its server is halted for what it did, and stays ended through a kill', async () => {
    const at = await shared.living()
    const operator = at.client
    const host = await attached(at, 'grown')
    const read = () => host.ask('resources/read', { uri: 'note:///a' })
    {
      await using _watch = await watching(operator, yes(operator, 'policy'))
      await read()
    }
    expect(await standingOf(operator, 'grown')).toHaveLength(1)
    expect(await read()).not.toHaveProperty('error') // nobody watches, and it passes
    await host.call('change', { list: 'tools', patch: { name: 'added' } })
    expect(await read()).toMatchObject({ error: { data: { code: 'ERR_SURFACE_UNGOVERNED' } } })
    await host[Symbol.asyncDispose]()
    expect(await standingOf(operator, 'grown')).toEqual([])
    const { client: after } = await shared.again()
    await after.call('servers/release', { name: 'grown' })
    expect(await standingOf(after, 'grown')).toEqual([])
  })

  test('ends, and a question with it, where more of its server is accepted on the operator’s standing word', async () => {
    const { client: operator } = await shared.living()
    await using watch = await watching(operator, ({ id, text }) =>
      text.includes('stands') ? operator.call('approvals/approve', { id, scope: 'policy' }) : null,
    )
    await call(operator, 'grows', 'echo', { text: 'stands' })
    const waiting = call(operator, 'grows', 'echo', { text: 'waits' })
    const refused = handled(expect(waiting).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' }))
    await watch.next(2)
    await call(operator, 'grows', 'add', {})
    await refused
    expect(await standingOf(operator, 'grows')).toEqual([])
  })

  test('ends where an operator takes it back, and stays ended through a kill', async () => {
    const operator = await standing('asked-withdrawn')
    const [one] = await standingOf(operator, 'asked-withdrawn')
    await operator.call('approvals/deny', { id: one?.id ?? '' })
    const { client: after } = await shared.again()
    await isAskedFor(after, 'asked-withdrawn')
  })

  test('is none of another version or of another package, nor of the old one that comes back', async () => {
    const servers = ['asked-version', 'asked-package']
    const { folder, config, client } = await shared.living()
    const write = (version: object): void => {
      const entryOf = (name: string) => rugPull({ package: { source: join(folder, name), target: '/app' } })
      const others = { 'asked-version': { ...entryOf('asked-version'), ...version } }
      writeFileSync(
        config,
        JSON.stringify(configured({ ...others, 'asked-package': entryOf('asked-package') })),
      )
    }
    for (const server of servers) cpSync(fixtures, join(folder, server), { recursive: true })
    const script = join(folder, 'asked-package', 'rug-pull.mjs')
    const text = readFileSync(script, 'utf8')
    const expectAnother = async (operator: Client): Promise<void> => {
      for (const server of servers) {
        await expect(call(operator, server), server).rejects.toMatchObject({ code: 'ERR_IDENTITY_CHANGED' })
        await operator.call('declarations/accept', { server })
        await isAskedFor(operator, server)
      }
    }
    write({})
    await client.call('daemon/reload', {})
    for (const server of servers) await standing(server)
    const changed = await shared.again(() => {
      write({ version: '2' })
      writeFileSync(
        script,
        `${text}
// changed
`,
      )
    })
    await expectAnother(changed.client)
    const back = await shared.again(() => {
      write({})
      writeFileSync(script, text)
    })
    await expectAnother(back.client)
  })

  test('a question that waits ends when its tool changes, whatever an operator says then', async () => {
    const { client: operator } = await shared.living()
    await using watch = await watching(operator)
    await call(operator, 'asked-waits', 'poison', { not: 'yet' }).catch(() => undefined)
    await operator.call('servers/stop', { server: 'asked-waits' })
    await operator.call('declarations/accept', { server: 'asked-waits' })
    const waiting = call(operator, 'asked-waits', 'add', {})
    const refused = handled(
      expect(waiting).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_APPROVAL/) }),
    )
    const { id } = await watch.next()
    await operator.call('declarations/accept', { server: 'asked-waits' })
    await refused
    await expect(operator.call('approvals/approve', { id })).rejects.toMatchObject({
      code: 'ERR_APPROVAL_NOT_FOUND',
    })
  })
})

test('a call that is asked about is told whose word has ended the question where that resets the trust of its tool', async () => {
  const { client: operator } = await shared.living()
  await using watch = await watching(operator)
  await operator.call('declarations/accept', { server: 'asked-waits' })
  const waiting = call(operator, 'asked-waits', 'add', {}).catch((error: unknown) => error)
  await watch.next()
  await operator.call('trust/reset', { server: 'asked-waits', tool: 'add', reason: 'a\u202etry' })
  expect(await waiting).toMatchObject({
    code: 'ERR_APPROVAL_DENIED',
    message: expect.stringMatching(
      /add was not called: an operator reset the trust of asked-waits\/add: a.*try$/,
    ),
  })
  expect(JSON.stringify(await waiting)).not.toContain('\u202e')
  const used = await records(operator, 'approval.used', 'asked-waits')
  const by = String(process.getuid?.())
  expect(used.at(-1)?.body).toMatchObject({ granted: false, by, reason: expect.stringContaining('reset') })
})

describe('what is accepted on the operator’s standing word', () => {
  test('is never what an operator left out', async () => {
    const { client: operator } = await shared.living()
    await operator.call('declarations/accept', { server: 'partly', tools: ['echo', 'add'] })
    await call(operator, 'partly', 'add', {})
    await call(operator, 'partly', 'added', {}) // which is new
    await operator.call('servers/stop', { server: 'partly' }) // and looked at again
    await call(operator, 'partly')
    for (const tool of ['poison', 'wait'])
      await expect(call(operator, 'partly', tool, {})).rejects.toMatchObject({
        code: 'ERR_DECLARATION_MISSING',
      })
  })

  test('is no more than tools.per_server, however often a server lists other tools', async () => {
    const at = await shared.living() // which has 5
    await using host = await attached(at, 'churning')
    const made: string[] = []
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await host.call('change', { list: 'tools', patch: { name } })
      made.push((await host.call(name)).error?.data.code ?? 'done')
    }
    expect(made).toEqual(['done', 'done', 'done', 'ERR_DECLARATION_MISSING', 'ERR_DECLARATION_MISSING'])
    const accepted = await records(at.client, 'surface.accepted', 'churning')
    expect(accepted.map(({ body }) => (body as { tools: unknown[] }).tools.length)).toEqual([2, 3, 4, 5])
  })
})

describe('what hosts launch', () => {
  const dynamic = { enabled: true, profile: 'node', tools: { allow: ['echo'] } }
  const own = sharedDaemon(configOf({}, { dynamic }))
  const launch = (client: Client, name: string, target = '/app', ...more: string[]) =>
    client.call('servers/launch', {
      name,
      command: 'node',
      args: [`${target}/echo.mjs`, ...more],
      package: { source: fixtures, target },
    })

  test('stands under the operator’s dynamic record, which is written when it changes', async () => {
    const at = await own.living()
    const operator = at.client
    await using host = await at.connect('host')
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
    const { client: same } = await own.again()
    expect(await records(same, 'dynamic.applied')).toHaveLength(1)
    const { client: other } = await own.again(() =>
      writeFileSync(at.config, JSON.stringify(configOf({}, { dynamic, max_dynamic_servers: 3 }))),
    )
    expect(await records(other, 'dynamic.applied')).toHaveLength(2)
    expect(await records(other, 'config.applied')).toHaveLength(1)
  })

  test('leaves nothing to what has its name in the next life of the daemon', async () => {
    const at = await shared.living()
    await using host = await at.connect('host')
    await launch(host, 'mine')
    await call(host, 'mine', 'echo', {})
    const { client: after } = await shared.again(() =>
      writeFileSync(
        at.config,
        JSON.stringify(configured({ mine: fixture('echo', { acceptance: 'manual' }) })),
      ),
    )
    await expect(call(after, 'mine', 'echo', {})).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
    // Its tools may not have been looked at anew yet: then it has no trust at all.
    const { tier, evidence } = (await trust(after, 'mine', 'echo')) ?? { tier: 'untrusted', evidence: 0 }
    expect({ tier, evidence }).toEqual({ tier: 'untrusted', evidence: 0 })
    expect((await records(after, 'server.removed', 'mine')).at(-1)?.body).toMatchObject({
      server: 'mine',
      reason: expect.stringContaining('gone with the daemon'),
    })
    await after.call('declarations/accept', { server: 'mine' })
    await call(after, 'mine', 'echo', {})
    const { client: last } = await shared.again()
    await call(last, 'mine', 'echo', {}) // and the operator’s word for it stays
  })

  test('does not get out of quarantine under another name, in another place, or with more arguments', async () => {
    const at = await shared.living()
    await using host = await at.connect('host')
    await launch(host, 'bad')
    await call(host, 'bad')
    await at.client.call('servers/quarantine', { server: 'bad', reason: 'it lied' })
    await host.call('servers/remove', { server: 'bad' })
    const refusal = { code: 'ERR_DYNAMIC_REFUSED', message: expect.stringContaining('it lied') }
    await expect(launch(host, 'bad')).rejects.toMatchObject(refusal)
    await expect(launch(host, 'good')).rejects.toMatchObject({
      ...refusal,
      message: expect.stringMatching(/the same thing, as bad, is quarantined .*sallyport release bad/),
    })
    await expect(launch(host, 'good', '/elsewhere')).rejects.toMatchObject(refusal)
    await expect(launch(host, 'good', '/app', 'more')).rejects.toMatchObject(refusal)
    const { client: after } = await shared.again()
    await using later = await at.connect('host')
    await expect(launch(later, 'good')).rejects.toMatchObject(refusal)
    await after.call('servers/release', { name: 'bad' })
    await launch(later, 'good')
    expect((await call(later, 'good', 'echo', {})).type).toBe('output')
  })
})

describe('the record', () => {
  test('says in every line how far hosts are separate, and of every act whose it was and from where', async () => {
    const token = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'
    const at = await shared.living()
    const operator = at.client
    await using host = await at.connect('host')
    expect(host.hello.separation).toBe('none')
    await call(host, 'recorded', 'echo', { token })
    await operator.call('servers/hold', { server: 'recorded', reason: 'lunch' })
    await expect(call(host, 'recorded')).rejects.toMatchObject({ code: 'ERR_PERMIT_REFUSED' })
    await operator.call('servers/release', { name: 'recorded' })
    await operator.call('trust/reset', { server: 'recorded', tool: 'echo' })
    await operator.call('permits/revoke', { server: 'recorded' })
    await operator.call('servers/quarantine', { server: 'recorded' })
    await operator.call('servers/release', { name: 'recorded' })
    await operator.call('declarations/accept', { server: 'recorded' })
    const all = (await operator.call('audit/query', { from: 'oldest', limit: 1000 })).records
    for (const { type, body } of all) expect({ type, body }).toMatchObject({ body: { separation: 'none' } })
    const own = (await operator.call('audit/query', { server: 'recorded', from: 'oldest', limit: 1000 }))
      .records
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
      expect(own.find((one) => one.type === type)).toMatchObject({ body: { peer } })
    expect(own.findLast(({ type }) => type === 'surface.accepted')).toMatchObject({ body: { peer } })
    const intent = own.find(({ type }) => type === 'call.intent')
    expect(intent?.body).toMatchObject({ reason: expect.stringContaining('allows'), redacted: 1 })
    expect(JSON.stringify(all)).not.toContain(token)
  })

  test('a declaration of what the sandbox does not grant is refused, with the class and the grant', async () => {
    const { client: operator } = await shared.living()
    const { declaration } = await operator.call('servers/declare', { server: 'declared' })
    const tools = {
      ...declaration.tools,
      echo: { ...declaration.tools['echo'], side_effects: ['read', 'network'] },
    }
    await expect(
      operator.call('declarations/accept', {
        server: 'declared',
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
  const calledOnce = async (client: Client, server: string): Promise<void> => {
    await call(client, server)
    await eventually(async () => (await trust(client, server, 'echo'))?.evidence === 1)
  }

  // Of what it let go of there is no snapshot to be spoiled.
  const own = sharedDaemon(configOf({ echo: fixture('echo') }, { journal: { keep_days: 30 } }))
  test('lets go of old segments, comes to the same without them, and says where it begins', async () => {
    const at = await own.living()
    const journal = join(at.stateDir, 'journal')
    const snapshots = join(journal, 'snapshots')
    const segments = (): readonly string[] => readdirSync(journal).filter((name) => name.endsWith('.jsonl'))
    const aged = (): void => {
      for (const name of segments()) utimesSync(join(journal, name), 1, 1)
    }
    await calledOnce(at.client, 'echo')
    await at.client.call('servers/hold', { server: 'echo', name: 'lunch' })
    await own.again(aged)
    await eventually(() => isKept(snapshots, 'echo'))
    const { client: last } = await own.again(() => {
      aged()
      clockStood(join(at.stateDir, 'clock'))
    })
    await eventually(() => !segments().includes('00000001.jsonl'))
    expect(await last.call('servers/holds', {})).toMatchObject({ holds: [{ name: 'lunch' }] })
    expect(await trust(last, 'echo', 'echo')).toMatchObject({ evidence: 1 })
    expect(await records(last, 'journal.pruned')).not.toEqual([])
    const verified = await at.run(['audit', 'verify'])
    expect(verified).toMatchObject({ status: 0, stdout: expect.stringMatching(/begins +at anchor \d+:/) })
    expect(await last.call('audit/verify', {})).toMatchObject({ ok: true, flaw: null })
  })

  test('is folded whole where its snapshots were tampered with, and says so', async () => {
    const at = await shared.living()
    const snapshots = join(at.stateDir, 'journal', 'snapshots')
    await calledOnce(at.client, 'tampered')
    await shared.again()
    await eventually(() => isKept(snapshots, 'tampered'))
    const { client: last } = await shared.again(() => {
      for (const name of readdirSync(snapshots)) {
        const text = readFileSync(join(snapshots, name), 'utf8')
        writeFileSync(join(snapshots, name), text.replaceAll('"evidence":1', '"evidence":99'))
      }
    })
    expect(await trust(last, 'tampered', 'echo')).toMatchObject({ evidence: 1, tier: 'untrusted' })
    const refused = (await records(last, 'snapshot.refused')).map(
      ({ body }) => (body as { reason: string }).reason,
    )
    expect(refused).not.toEqual([])
    for (const reason of refused) expect(reason).toContain('key')
  })

  test('is taken up where its end was cut off, and says so', async () => {
    const { client, stateDir } = await shared.living()
    const directory = join(stateDir, 'journal')
    await calledOnce(client, 'cut')
    const [{ seq } = { seq: Infinity }] = (await client.call('audit/query', { limit: 1 })).records
    await eventually(
      () => Number(/"seq":(\d+)/.exec(readFileSync(`${directory}.head`, 'utf8'))?.[1]) >= seq,
      5000,
    )
    const { client: last } = await shared.again(() => {
      const segments = readdirSync(directory).filter((name) => name.endsWith('.jsonl'))
      const segment = join(directory, segments.toSorted().at(-1) ?? '')
      writeFileSync(segment, readFileSync(segment, 'utf8').replace(/(?<=\n)[^]*/, ''))
    })
    const told = await records(last, 'journal.shortened')
    expect(told).toMatchObject([{ body: { reason: expect.stringContaining('cut off') } }])
    expect(await trust(last, 'cut', 'echo')).toBeUndefined()
    // A failure for whoever does not know of it, also where nobody reads why.
    const at = await shared.living()
    const verify = (...more: readonly string[]) => at.run(['audit', 'verify', ...more])
    const news = await verify()
    expect(news).toMatchObject({ status: 4, stdout: expect.stringContaining('whole, and had been longer') })
    expect(news.stderr).toContain(`who knows why says --shortened ${told[0]?.seq}`)
    const unread = at.start(['audit', 'verify'])
    unread.stdout?.destroy()
    expect(await once(unread, 'exit')).toEqual([4, null])
    expect((await verify('--shortened', `${told[0]?.seq}`)).status).toBe(0)
    expect((await verify('--shortened', '1')).status).toBe(4)
    expect((await verify('--shortened', 'x')).status).toBe(7)
  })

  test('is taken up where a loss of power left a hole in its last batch, and tells of it', async () => {
    const at = await shared.living()
    const directory = join(at.stateDir, 'journal')
    let path = ''
    const { client: last } = await shared.again(() => {
      const names = readdirSync(directory).toSorted()
      path = join(directory, names.findLast((name) => name.endsWith('.jsonl')) ?? '')
      const bytes = readFileSync(path)
      const line = bytes.lastIndexOf(10, bytes.length - 2) + 1
      writeFileSync(path, bytes.fill(0, line + 20, line + 60))
      rmSync(`${directory}.head`)
    })
    const { ok, torn } = await last.call('audit/verify', {})
    const segment = Number(basename(path, '.jsonl'))
    expect({ ok, torn }).toMatchObject({ ok: true, torn: [{ segment }] })
    expect(await records(last, 'segment.opened')).toContainEqual(
      expect.objectContaining({ body: expect.objectContaining({ torn: torn[0] }) }),
    )
    expect((await at.run(['audit', 'verify'])).stdout).toMatch(
      new RegExp(`cut off +segment ${segment} at byte`),
    )
  })
})
