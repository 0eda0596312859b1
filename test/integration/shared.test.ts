// `instance: shared` in a real daemon: unmodified clients of the SDK in sessions of their own, and one sandbox for all of a user's.
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client as McpClient, UnsupportedProtocolVersionError } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { configOf, fixture, type Place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { reachingPlace, recordsAbout } from '../support/reaching-out.ts'
import { speaker } from '../support/speaker.ts'
import { tempDir } from '../support/temp-dir.ts'
import { watching } from '../support/watching.ts'

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const shim = at(`dist/libexec/${process.arch}/sallyport-stdio`)
/** The server and what it resolves, and nothing else: what is digested at the first start is little. */
let code: Awaited<ReturnType<typeof tempDir>>
const server = (more: object = {}): object => ({
  command: 'node',
  args: ['/app/shared.mjs'],
  package: { source: join(code.path, 'app'), target: '/app', with: [join(code.path, 'node_modules')] },
  profile: 'node',
  trust: 'trusted',
  acceptance: 'first-use',
  instance: 'shared',
  ...more,
})
const servers = (): Readonly<Record<string, object>> => ({
  shared: server({ restart: { schedule_s: [0.2], jitter: 0 } }),
  asked: server(),
  legacy: fixture('echo', { instance: 'shared' }),
  keyed: fixture('shares', {
    profile: 'open',
    instance: 'shared',
    credentials: [{ use: 'key', inject: 'meta', as: 'KEY' }],
  }),
})
const rules = [
  { permission: 'mcp:asked:boot', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]

const key = 'key-0123456789-abcdefghij'
const more = { rules, credentials: { key: { env: 'TEST_KEY' } } }

let running: Place
let operator: Client
let child: TestDaemon['process']
beforeAll(async () => {
  code = await tempDir()
  await cp(at('test/fixtures/packages/modern'), join(code.path, 'app'), { recursive: true })
  for (const name of ['@modelcontextprotocol/server', '@modelcontextprotocol/core', 'zod'])
    await cp(at(`node_modules/${name}`), join(code.path, 'node_modules', name), { recursive: true })
  running = await reachingPlace(servers(), { allow: [], credentials: ['meta'] }, more)
  ;({ client: operator, process: child } = await serve(running, { TEST_KEY: key }))
}, 60_000)
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  child.kill('SIGTERM')
  await eventually(() => child.exitCode !== null)
  await running[Symbol.asyncDispose]()
  await code[Symbol.asyncDispose]()
})

/** A client in a session of its own. */
async function client(name = 'shared', mode: 'auto' | { pin: string } = { pin: '2026-07-28' }) {
  const mcp = new McpClient({ name: 'host', version: '1' }, { versionNegotiation: { mode } })
  const args = [name, '--no-autostart']
  await mcp.connect(
    new StdioClientTransport({ command: shim, args, env: { ...running.env }, stderr: 'ignore' }),
  )
  return {
    mcp,
    text: async (tool: string, options = {}): Promise<string> => {
      const { content } = await mcp.callTool({ name: tool, arguments: {} }, options)
      return (content as readonly { text: string }[])[0]?.text ?? ''
    },
    [Symbol.asyncDispose]: () => mcp.close(),
  }
}

const instancesOf = async (name = 'shared') =>
  (await operator.call('servers/get', { server: name })).instances

describe('clients of the SDK', () => {
  test('share a process, and each has its own answers, progress and subscriptions', async () => {
    await using one = await client()
    await using two = await client()
    expect(await one.text('boot')).toBe(await two.text('boot'))
    expect(await instancesOf()).toMatchObject([{ purpose: 'shared', sessions: 2, state: 'ready' }])
    expect(await operator.call('servers/test', { server: 'shared' })).toMatchObject({ ok: true })
    expect((await running.run(['show', 'shared'])).stdout).toContain('shared by 2 sessions')

    const steps: number[][] = [[], []]
    const work = [one, two].map(({ text }, n) =>
      handled(
        text('work', { onprogress: ({ progress }: { progress: number }) => void steps[n]?.push(progress) }),
      ),
    )
    await eventually(() => steps.every(({ length }) => length === 3))
    expect(await one.text('finish')).toBe('2')
    expect(await Promise.all(work)).toEqual(['worked', 'worked'])
    expect(steps).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])

    const heard: string[][] = [[], []]
    for (const [n, { mcp }] of [one, two].entries())
      mcp.setNotificationHandler('notifications/resources/updated', ({ params }) => {
        heard[n]?.push(params.uri)
      })
    const subscription = await one.mcp.listen({ resourceSubscriptions: ['memo://note'] })
    await two.text('touch')
    await eventually(() => heard[0]?.length === 1)
    await subscription.close()
    await two.mcp.listen({ resourceSubscriptions: ['memo://note'] })
    await one.text('touch')
    await eventually(() => heard[1]?.length === 1)
    expect(heard).toEqual([['memo://note'], ['memo://note']])
  })

  test('find out by themselves which version is spoken', async () => {
    await using one = await client('shared', 'auto')
    expect(one.mcp.getNegotiatedProtocolVersion()).toBe('2026-07-28')
    expect(await one.text('boot')).not.toBe('')
  })

  test('outlive the process: calls in flight fail, and later ones find the next', async () => {
    await using one = await client()
    await using two = await client()
    const before = await one.text('boot')
    await expect(two.text('crash')).rejects.toThrow(/mcp server shared is unavailable/)
    await eventually(async () => (await instancesOf())[0]?.state === 'ready')
    expect(await one.text('boot')).not.toBe(before)
    expect(await one.text('boot')).toBe(await two.text('boot'))
  })
})

test('an approval for a session is for that session, whoever shares its process', async () => {
  await using watch = await watching(operator)
  await using two = await client('asked')
  {
    await using one = await client('asked')
    const first = handled(one.text('boot'))
    await operator.call('approvals/approve', { id: (await watch.next()).id, scope: 'session' })
    expect(await one.text('boot')).toBe(await first)
    const second = handled(two.text('boot'))
    await operator.call('approvals/deny', { id: (await watch.next(2)).id, reason: 'no' })
    expect(await second).toMatch(/^asked boot was not called: an operator said no: no$/)
  }
  await eventually(async () => (await operator.call('approvals/list', {})).standing.length === 0)
  expect(await instancesOf('asked')).toMatchObject([{ sessions: 1 }])
})

test('a client of the older era alone is told which version there is, in an error that it knows', async () => {
  const mcp = new McpClient({ name: 'host', version: '1' }, { versionNegotiation: { mode: 'legacy' } })
  const args = ['shared', '--no-autostart']
  const transport = new StdioClientTransport({
    command: shim,
    args,
    env: { ...running.env },
    stderr: 'ignore',
  })
  const refused = await mcp.connect(transport).catch((error: unknown) => error)
  await mcp.close()
  expect(refused).toBeInstanceOf(UnsupportedProtocolVersionError)
  expect(refused).toMatchObject({ supported: ['2026-07-28'], requested: '2025-11-25' })
})

test('a server of the older era is refused by name, with the way', async () => {
  const call = { server: 'legacy', tool: 'echo', arguments: {} }
  await expect(operator.call('tools/call', call)).rejects.toMatchObject({
    code: 'ERR_ERA_UNSUPPORTED',
    message: expect.stringMatching(/legacy does not speak 2026-07-28.*instance: session/),
  })
  await eventually(async () => (await instancesOf('legacy'))[0]?.state === 'failed')
})

test('secrets in files and variables are refused for it when the file is read', async () => {
  const credentials = [{ use: 'key', inject: 'env', as: 'KEY' }]
  const bad = join(running.folder, 'bad.yaml')
  const config = configOf({ shared: server({ credentials }) }, { credentials: { key: { env: 'HOME' } } })
  await writeFile(bad, JSON.stringify(config), { mode: 0o600 })
  const ran = await running.run(['serve', '--config', bad])
  expect([ran.status, ran.stderr]).toEqual([7, expect.stringContaining('instance: call')])
})

test('a secret is lent to the process, on record as a window with the calls of other sessions, and comes back to none', async () => {
  const attach = async () => {
    const host = await RawCaller.open(join(running.runtimeDir, 'host/host.sock'))
    await host.ask('session/attach', { server: 'keyed' })
    const call = (name: string, args: object = {}) =>
      host.ask('tools/call', { name, arguments: args, _meta: speaker })
    return { host, call, [Symbol.dispose]: () => host[Symbol.dispose]() }
  }
  using one = await attach()
  using two = await attach()
  await two.call('pid')
  const held = one.call('hold', { key: 'a' })
  const intents = () => recordsAbout(running, 'call.intent', 'keyed')
  const holding = await eventually(() => intents().find(({ body }) => body['subject'] === 'hold'))
  expect((await two.call('heard')).error?.data.code).toBe('ERR_SECRET_IN_RESULT')
  await two.call('say', { lines: ['{"jsonrpc":"2.0","id":ID:a,"result":{"content":[]}}'] })
  await held
  const outcomes = recordsAbout(running, 'call.outcome', 'keyed')
  const beside = outcomes.find(({ body }) => body['subject'] === 'heard')?.body
  expect(beside).toMatchObject({ attribution: 'window', calls: [holding.body['call']], exposed: true })
  expect([one, two].flatMap(({ host }) => host.lines).join()).not.toContain(key)
})

test('a reload that changes it ends its sessions, and one that does not is not noticed', async () => {
  await using one = await client()
  const before = await one.text('boot')
  await writeFile(running.config, JSON.stringify(configOf({ ...servers(), added: fixture('echo') }, more)))
  await operator.call('daemon/reload', {})
  expect(await one.text('boot')).toBe(before)
  const closed = new Promise<void>((resolve) => Object.assign(one.mcp, { onclose: resolve }))
  const changed = { ...servers(), shared: server({ version: '2' }) }
  await writeFile(running.config, JSON.stringify(configOf(changed, more)))
  await operator.call('daemon/reload', {})
  await closed
  expect(await instancesOf()).toEqual([])
  expect(recordsAbout(running, 'call.intent', 'shared').length).toBeGreaterThan(0)
})
