// What the operator alone can do, through the built command line and both sockets, on real servers.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { createTransport } from '../../src/client/transport.ts'
import { configOf, daemon, fixture, serve } from '../support/daemon.ts'
import type { TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { handled } from '../support/handled.ts'
import { withoutFirst } from '../support/operator.ts'
import { watching, yes } from '../support/watching.ts'

const rules = [
  { permission: 'mcp:asking:*', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]
const servers = {
  asking: fixture('echo'),
  manual: fixture('echo', { acceptance: 'manual' }),
  fickle: fixture('list-changed', { surface: 'dynamic', acceptance: 'manual' }),
  held: fixture('echo'),
}
const dynamic = { enabled: true, profile: 'node', tools: { allow: ['echo'] } }

let at: TestDaemon
let operator: Client
let host: Client
beforeAll(async () => {
  at = await daemon(
    configOf(servers, {
      rules,
      dynamic,
      max_dynamic_servers: 1,
      approval: { wait_ms: 4000 },
      journal: { evidence_bytes: 1024 * 1024 },
    }),
  )
  operator = await at.connect('operator')
  host = await at.connect('host')
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await host[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
})

const call = (client: Client, server: string, tool = 'echo', args: Record<string, unknown> = { a: 1 }) =>
  client.call('tools/call', { server, tool, arguments: args })

describe('approvals', () => {
  test('a call that needs a yes is denied at once where nobody watches', async () => {
    await expect(call(host, 'asking')).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
  })

  test('an attached session waits with signs of life, runs after the yes, and never sees the id', async () => {
    await using watch = await watching(operator)
    const mcp = new McpClient({ name: 'host', version: '1' })
    await mcp.connect(createTransport({ server: 'asking', at: { runtimeDir: at.runtimeDir } }))
    const progress: unknown[] = []
    const called = handled(
      mcp.callTool({ name: 'echo', arguments: { in: 'session' } }, undefined, {
        onprogress: (said) => progress.push(said),
      }),
    )
    const { id, summary } = await watch.next()
    expect(summary).toContain('asking/echo@')
    await eventually(() => progress.length > 0)
    await operator.call('approvals/approve', { id })
    const result = await called
    expect(result.structuredContent).toEqual({ in: 'session' })
    expect(JSON.stringify([result, progress])).not.toContain(id)
    await mcp.close()
  })

  test('no means no, with the reason; a swapped argument is another question', async () => {
    await using watch = await watching(operator)
    const first = handled(call(host, 'asking', 'echo', { path: '/a' }))
    const asked = await watch.next()
    await operator.call('approvals/approve', { id: asked.id, scope: 'policy' })
    const { type, call_id } = await first
    expect([type, asked.call]).toEqual(['output', call_id])
    const { records } = await operator.call('audit/query', { call: call_id })
    expect(records.map((one) => one.type)).toEqual([
      'approval.asked',
      'approval.granted',
      'approval.used',
      'call.intent',
      'call.outcome',
    ])
    expect(records[0]?.body).toMatchObject({ peer: { pid: process.pid }, deadline_ms: expect.any(Number) })
    await call(host, 'asking', 'echo', { path: '/a' }) // stands
    const explained = await at.run(['explain', 'asking', 'echo', '-a', 'path=/a'])
    expect(explained).toMatchObject({ status: 0, stdout: expect.stringContaining('would be sent') })
    expect((await at.run(['explain', 'asking', 'echo', '-a', 'path=/b'])).stdout).toContain('would be asked')
    const swapped = handled(call(host, 'asking', 'echo', { path: '/b' }))
    await operator.call('approvals/deny', { id: (await watch.next(2)).id, reason: 'not there' })
    await expect(swapped).rejects.toMatchObject({ code: 'ERR_APPROVAL_DENIED' })
    const { standing } = await operator.call('approvals/list', {})
    for (const { id } of standing) await operator.call('approvals/deny', { id })
    const again = handled(call(host, 'asking', 'echo', { path: '/a' }))
    await operator.call('approvals/deny', { id: (await watch.next(3)).id })
    await expect(again).rejects.toMatchObject({ code: 'ERR_APPROVAL_DENIED' })
  })

  test('a question that nobody answers ends by itself, and an answer after that is none', async () => {
    await using watch = await watching(operator)
    await using heard = await hearing(host)
    const waiting = handled(call(host, 'asking'))
    const { id, call: waits } = await watch.next()
    const waitsFor = await eventually(() =>
      heard.events.find(({ type, detail }) => type === 'call/waiting' && detail['call'] === waits),
    )
    expect(waitsFor).toMatchObject({ server: 'asking', detail: { tool: 'echo', for: 'approval' } })
    expect(JSON.stringify(heard.events)).not.toContain(id)
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_APPROVAL_TIMEOUT' })
    await expect(operator.call('approvals/approve', { id })).rejects.toMatchObject({
      code: 'ERR_APPROVAL_NOT_FOUND',
    })
  })

  test('a question waits as long as any operator watches, and is a no when the last one leaves', async () => {
    const [one, other] = [await at.connect('operator'), await at.connect('operator')]
    for (const watcher of [one, other]) await watcher.call('approvals/subscribe', {})
    const waiting = call(host, 'asking')
    const refused = handled(
      expect(waiting).rejects.toMatchObject({
        code: 'ERR_APPROVAL_UNAVAILABLE',
        message: expect.stringContaining('the last operator who listened has left'),
      }),
    )
    const asked = async () => (await operator.call('approvals/list', {})).pending
    await eventually(async () => (await asked()).length === 1)
    await one[Symbol.asyncDispose]()
    await eventually(async () => (await operator.call('approvals/list', {})).listeners === 1)
    expect(await asked()).toHaveLength(1)
    await other[Symbol.asyncDispose]()
    await refused
    expect(await asked()).toEqual([])
  })

  test('an approval for a session is good for its equal calls, and ends with it', async () => {
    await using watch = await watching(operator)
    const mcp = new McpClient({ name: 'host', version: '1' })
    await mcp.connect(createTransport({ server: 'asking', at: { runtimeDir: at.runtimeDir } }))
    const say = () => mcp.callTool({ name: 'echo', arguments: { once: 'more' } })
    const first = handled(say())
    await operator.call('approvals/approve', { id: (await watch.next()).id, scope: 'session' })
    await first
    await say()
    expect((await operator.call('approvals/list', {})).standing).toMatchObject([{ scope: 'session' }])
    await mcp.close()
    await eventually(async () => (await operator.call('approvals/list', {})).standing.length === 0)
  })

  test('an approval that stands ends when its tool is accepted anew', async () => {
    await using watch = await watching(operator)
    const first = handled(call(host, 'asking', 'echo', { n: 1 }))
    await operator.call('approvals/approve', { id: (await watch.next()).id, scope: 'policy' })
    await first
    await operator.call('declarations/accept', { server: 'asking' })
    expect((await operator.call('approvals/list', {})).standing).toEqual([])
    const again = handled(call(host, 'asking', 'echo', { n: 1 }))
    await operator.call('approvals/deny', { id: (await watch.next(2)).id })
    await expect(again).rejects.toMatchObject({ code: 'ERR_APPROVAL_DENIED' })
  })
})

describe('declarations', () => {
  test('what was not accepted is not callable; a draft, read and accepted, is', async () => {
    await expect(call(host, 'manual')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
    const path = join(at.folder, 'manual.yaml')
    expect((await at.run(['declare', 'manual', '--out', path])).status).toBe(0)
    const draft = await readFile(path, 'utf8')
    expect(draft).toContain('claimed by the server: readOnlyHint: true')
    expect(draft).toContain('destructiveHint is absent, so the worst is assumed')
    await writeFile(path, draft.replace('resource_scopes: []', 'resource_scopes: [/etc]'))
    const refused = await at.run(['accept', 'manual', '--declaration', path])
    expect(refused.status).toBe(7)
    expect(refused.stderr).toMatch(
      /manual\.yaml:\d+:\d+: tools\.echo\.resource_scopes\[0\]: got "\/etc", expected a path/,
    )
    await writeFile(path, withoutFirst(draft, 'fail'))
    const accepted = await at.run(['accept', 'manual', '--declaration', path, '--json'])
    expect(JSON.parse(accepted.stdout)).toMatchObject({ accepted: ['echo', 'error'], left_out: ['fail'] })
    expect((await call(host, 'manual')).metadata.identity).toMatch(/^manual\/echo@/)
    await expect(call(host, 'manual', 'fail')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
  })

  test('a declaration of what is not listed is refused, and accepts nothing', async () => {
    const { declaration } = await operator.call('servers/declare', { server: 'fickle' })
    const [echo] = Object.values(declaration.tools)
    const other = { ...declaration, tools: { ...declaration.tools, missing: echo } }
    await expect(
      operator.call('declarations/accept', { server: 'fickle', declaration: other }),
    ).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' })
    await expect(call(host, 'fickle')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
  })
})

describe('holds, trust and the record', () => {
  test('a hold stops calls at the boundary until it is released', async () => {
    await call(host, 'held')
    expect((await at.run(['hold', 'held', 'echo', '--name', 'pause'])).status).toBe(0)
    await expect(call(host, 'held')).rejects.toMatchObject({
      code: 'ERR_PERMIT_REFUSED',
      message: expect.stringContaining('sallyport release pause') as string,
    })
    const explained = await at.run(['explain', 'held', 'echo'])
    expect(explained).toMatchObject({ status: 2 })
    expect(explained.stdout).toContain('the hold pause covers it')
    expect((await at.run(['release', 'pause'])).status).toBe(0)
    await call(host, 'held')
    expect((await at.run(['release', 'pause'])).status).toBe(8)
  })

  test('a quarantined server is stopped for all, and runs again once it is released', async () => {
    await call(host, 'held')
    await operator.call('servers/quarantine', { server: 'held', reason: 'a look\u001b[2J' })
    await expect(call(host, 'held')).rejects.toMatchObject({
      code: 'ERR_SERVER_UNAVAILABLE',
      message: expect.stringContaining(String.raw`a look\u001b[2J`),
    })
    expect(await operator.call('servers/release', { name: 'held' })).toEqual({ released: ['quarantine'] })
    await call(host, 'held')
  })

  test('trust is listed by canonical identity, and a reset begins anew', async () => {
    await call(host, 'held')
    const { trust } = JSON.parse((await at.run(['trust', 'list', 'held', '--json'])).stdout)
    const echo = trust.find(({ tool }: { tool: string }) => tool === 'echo')
    expect(echo).toMatchObject({ identity: 'held/echo@0#1', evidence: expect.any(Number) })
    const { reset } = await operator.call('trust/reset', { server: 'held', tool: 'echo' })
    expect(reset).toMatchObject([{ tier: 'untrusted', evidence: 0, epoch: echo.epoch + 1 }])
  })

  test('the journal is verified with and without the daemon, and against an anchor', async () => {
    const exported = await at.run(['audit', 'export'])
    const anchor = /anchor (\S+)/.exec(exported.stderr)?.[1] ?? ''
    const lines = exported.stdout.trimEnd().split('\n')
    expect(lines.length).toBe(Number(anchor.split(':')[0]))
    expect((await at.run(['audit', 'verify', '--anchor', anchor])).status).toBe(0)
    expect((await at.run(['audit', 'verify', '--state', at.stateDir, '--anchor', anchor])).status).toBe(0)
    const other = anchor.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))
    expect((await at.run(['audit', 'verify', '--anchor', other])).status).toBe(4)
  })
})

test('a journal that is longer than a message is read and exported whole', async () => {
  const text = 'x'.repeat(500_000)
  // 1.5 MB on record for each: the request, and the answer that has it twice
  for (const n of Array(12).keys()) await call(host, 'held', 'echo', { text, n })
  const exported = await at.run(['audit', 'export'])
  const records = exported.stdout.trimEnd().split('\n')
  expect([exported.stdout.length > 16 * 1024 * 1024, exported.status]).toEqual([true, 0])
  expect(exported.stderr).toContain(`anchor ${records.length}:`)
  const tail = await at.run(['audit', 'tail', '-n', '24', '--json'])
  expect(tail.stderr).toBe('')
  expect(tail.stdout.length).toBeGreaterThan(16 * 1024 * 1024)
  expect(JSON.parse(tail.stdout)).toMatchObject({ records: { length: 24 }, more: false })
})

describe('servers that come and go', () => {
  test('a host launches one within the limits, calls it, and removes it; nobody launches one more', async () => {
    const { source } = { source: join(import.meta.dirname, '../fixtures/servers') }
    const code = { source, target: '/app' }
    const launch = (name: string) =>
      host.call('servers/launch', { name, command: 'node', args: ['/app/echo.mjs'], package: code })
    expect(await launch('mine')).toMatchObject({ name: 'mine', trust: 'sandboxed', scope: 'dynamic' })
    expect(await call(host, 'mine')).toMatchObject({ type: 'output' })
    await expect(call(host, 'mine', 'fail')).rejects.toMatchObject({
      exitStatus: expect.any(Number),
      message: expect.stringContaining('the launch servers.mine.tools.allow'),
    })
    const { records } = await operator.call('audit/query', { type: 'call.denied', server: 'mine' })
    const { call: denied } = Object(records[0]?.body) as { call: string }
    expect((await at.run(['explain', denied])).stdout).toMatch(/^caller +uid \d+$/m)
    await expect(launch('more')).rejects.toMatchObject({ code: 'ERR_DYNAMIC_REFUSED' })
    await expect(launch('echo')).rejects.toMatchObject({ code: expect.stringMatching(/EXISTS|DYNAMIC/) })
    expect(await host.call('servers/remove', { server: 'mine' })).toMatchObject({ removed: 'mine' })
    await expect(call(host, 'mine')).rejects.toMatchObject({ code: 'ERR_SERVER_NOT_FOUND' })
    await expect(host.call('servers/remove', { server: 'held' })).rejects.toMatchObject({
      code: 'ERR_NOT_AUTHORISED',
    })
  })

  test('a registration states everything, is judged as a configuration is, and is callable', async () => {
    const entry = fixture('echo', { version: '1', justification: 'a test', tags: [] })
    const { trust: _, ...silent } = entry as { trust: string }
    await expect(
      operator.call('servers/add', { server: 'added', entry: { ...silent } }),
    ).rejects.toMatchObject({
      code: 'ERR_INVALID_PARAMS',
    })
    await expect(
      operator.call('servers/add', { server: 'added', entry: { ...entry, command: '/bin/sh' } }),
    ).rejects.toMatchObject({
      code: 'ERR_CONFIG_INVALID',
      message: expect.stringMatching(/^the registration: servers\.added\.command/),
    })
    expect(await operator.call('servers/add', { server: 'added', entry: { ...entry } })).toMatchObject({
      scope: 'registered',
    })
    expect(await call(host, 'added')).toMatchObject({ type: 'output' })
    expect((await at.run(['remove', 'added'])).status).toBe(0)
  })

  test('who registers a quarantined server anew has it quarantined, until it is released', async () => {
    const entry = fixture('echo', { version: '1', justification: 'a test', tags: [] })
    const added = { server: 'again', entry: { ...entry } }
    await operator.call('servers/add', added)
    await operator.call('servers/quarantine', { server: 'again' })
    await operator.call('servers/remove', { server: 'again' })
    await operator.call('servers/add', added)
    await expect(operator.call('servers/start', { server: 'again' })).rejects.toMatchObject({
      code: 'ERR_SERVER_UNAVAILABLE',
    })
    await operator.call('servers/release', { name: 'again' })
    await operator.call('servers/start', { server: 'again' })
    await operator.call('servers/remove', { server: 'again' })
  })
})

describe('finding tools', () => {
  test('above the threshold the list is the search and what it found; the search can be called', async () => {
    const tools = { search_threshold: 2, naming: 'mcp__<server>__<tool>' }
    await using few = await daemon(configOf({ echo: fixture('echo') }, { tools }))
    await using client = await few.connect('host')
    await client.call('servers/start', { server: 'echo' })
    const names = async () => (await client.call('tools/list', {})).tools.map(({ name }) => name)
    expect(await names()).toEqual(['mcp__sallyport__search'])
    const found = await client.call('tools/call', {
      server: 'sallyport',
      tool: 'search',
      arguments: { query: 'return arguments' },
    })
    expect(JSON.stringify(found.data)).toContain('mcp__echo__echo')
    expect(await names()).toEqual(['mcp__sallyport__search', 'mcp__echo__echo'])
    expect((await client.call('tools/list', { all: true })).tools).toHaveLength(3)
    expect(await client.call('tools/describe', { server: 'echo', tool: 'echo' })).toMatchObject({
      identity: 'echo/echo@0#1',
      declaration: { side_effects: ['read'] },
      halted: null,
    })
  })

  test('the search that is called takes no more words than the method', async () => {
    await using few = await daemon()
    await using client = await few.connect('host')
    const call = (query: unknown) =>
      client.call('tools/call', { server: 'sallyport', tool: 'search', arguments: { query } })
    const most = 'x '.repeat(500)
    expect((await call(most)).type).toBe('output')
    for (const [query, got] of [
      [`${most}x`, `got "${most.slice(0, 60)}`],
      [7, 'got 7'],
      [undefined, 'got nothing'],
    ])
      await expect(call(query)).rejects.toMatchObject({
        code: 'ERR_ARGUMENTS_INVALID',
        message: expect.stringContaining(`arguments.query: ${got}`),
      })
    await expect(client.call('tools/search', { query: `${most}x` })).rejects.toMatchObject({
      code: 'ERR_INVALID_PARAMS',
    })
  })
})

test('a restart forgets neither what was registered, accepted, approved nor held', async () => {
  const asks = [{ permission: 'mcp:*:*', action: 'ask' }]
  await using first = await daemon(configOf({ asking: fixture('echo') }, { rules: asks }))
  const entry = fixture('echo', { version: '1', justification: 'a test', tags: [] })
  {
    await using one = await first.connect('operator')
    await one.call('servers/add', { server: 'added', entry: { ...entry } })
    await one.call('servers/hold', { server: 'added' })
    {
      await using _watch = await watching(one, yes(one, 'policy'))
      await call(one, 'asking')
    }
    await one.call('daemon/shutdown', {})
  }
  await eventually(() => first.process.exitCode !== null)
  const { client } = await serve(first)
  await using again = client
  expect((await again.call('servers/get', { server: 'added' })).scope).toBe('registered')
  expect(await again.call('servers/holds', {})).toMatchObject({ holds: [{ name: 'added' }] })
  await call(again, 'asking')
  await expect(call(again, 'asking', 'echo', { a: 2 })).rejects.toMatchObject({
    code: 'ERR_APPROVAL_UNAVAILABLE',
  })
})

test.each([
  'servers/add',
  'servers/declare',
  'servers/hold',
  'servers/release',
  'servers/quarantine',
  'declarations/accept',
  'approvals/list',
  'approvals/approve',
  'approvals/deny',
  'approvals/subscribe',
  'trust/list',
  'trust/reset',
  'permits/list',
  'permits/revoke',
  'audit/query',
  'audit/verify',
  'policy/explain',
] as const)('a host that tries %s is told that it is not authorised', async (method) => {
  await expect(host.call(method, {})).rejects.toMatchObject({
    code: 'ERR_NOT_AUTHORISED',
    exitStatus: 6,
  })
})
