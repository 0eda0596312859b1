// The ten scenarios that a sandbox for MCP servers must pass, each end to end by name: a real daemon, real servers, real upstreams.
import { createServer as createHttp } from 'node:http'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { type Api, openApi } from '../support/api.ts'
import { endServe, configOf, fixture, place, type Place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'
import { processesWith } from '../support/leaks.ts'

const token = 'conformance-0123456789-token-abcdef'
const word = 'a-word-of-the-host'

interface Counted extends AsyncDisposable {
  readonly port: number
  /** Bytes that came, whoever sent them, and connections that were made */
  readonly seen: { bytes: number; connections: number }
}

/** Listens where nobody may come, or where one server may. */
const count = async (): Promise<Counted> => {
  const seen = { bytes: 0, connections: 0 }
  const server = createServer((socket) => {
    seen.connections += 1
    socket.on('error', () => socket.destroy()).on('data', (chunk) => (seen.bytes += chunk.length))
  })
  return { port: await listening(server), seen, [Symbol.asyncDispose]: () => closing(server) }
}

const listening = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
const closing = async (server: Server): Promise<void> => {
  server.close()
  await once(server, 'close')
}

let api: Api
let other: Counted
let redirects: { readonly port: number; readonly server: ReturnType<typeof createHttp> }
let at: Place
let client: Client
let child: TestDaemon['process']

const grant = (port: number, more: object = {}) => ({
  host: api.host,
  port,
  address: api.address,
  private: true,
  tls: port === api.port,
  reason: 'the API',
  ...more,
})
const reaches = (more: object = {}): object => fixture('reaches-out', { profile: 'open', ...more })
const documents = (): object => ({
  source: './documents',
  target: '/workspace',
  access: 'read',
  reason: 'documents',
})

const serversFor = (): Readonly<Record<string, object>> => ({
  raw: fixture('reaches-out'),
  open: reaches({ egress: [grant(api.plainPort), grant(redirects.port)] }),
  wide: reaches({ egress: [grant(api.plainPort), grant(other.port)] }),
  wallless: fixture('reaches-out', { runtime: 'runsc' }),
  extended: reaches({ egress: [grant(api.plainPort)], mounts: [documents()], env: { REGION: 'north' } }),
  plain: reaches({ egress: [grant(redirects.port)] }),
  swaps: reaches({
    egress: [grant(api.port), grant(api.plainPort)],
    credentials: [
      {
        use: 'api',
        inject: 'egress',
        as: 'API_TOKEN',
        hosts: [`${api.host}:${api.port}`],
        ca_file: api.caFile,
      },
    ],
  }),
  own: reaches({ instance: 'call', credentials: [{ use: 'api', inject: 'env', as: 'SECRET_WORD' }] }),
  revoked: reaches({ egress: [grant(other.port)] }),
  stored: fixture('echo', { acceptance: 'manual', version: '1' }),
})

const rules = [
  { permission: 'mcp:own:read', action: 'deny' },
  { permission: 'mcp:*:*', action: 'allow' },
]

beforeAll(async () => {
  ;[api, other] = await Promise.all([openApi(), count()])
  const server = createHttp((request, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${other.port}${request.url}` }).end()
  })
  redirects = { port: await listening(server), server }
  at = await place(configOf(serversFor(), { rules, credentials: { api: { env: 'TEST_TOKEN' } } }))
  await chmod(at.folder, 0o755)
  await mkdir(join(at.folder, 'documents'), { mode: 0o755 })
  await writeFile(join(at.folder, 'documents/a.txt'), word, { mode: 0o644 })
  await writeFile(join(at.folder, 'of-the-host'), word, { mode: 0o644 })
  await mkdir(join(at.folder, 'profiles'), { mode: 0o700 })
  const open = {
    version: 1,
    name: 'open',
    extends: 'node',
    widens: true,
    filesystem: { mounts: 'read' },
    network: {
      mode: 'allowlist',
      allow: [api.port, api.plainPort, other.port, redirects.port].map((port) => {
        const { tls: _, ...allowed } = grant(port)
        return allowed
      }),
    },
    credentials: ['egress', 'env'],
  }
  await writeFile(join(at.folder, 'profiles/open.yaml'), JSON.stringify(open), { mode: 0o600 })
  ;({ process: child, client } = await serve(at, { TEST_TOKEN: token }))
}, 60_000)

afterAll(async () => {
  await endServe({ process: child, client })
  await at[Symbol.asyncDispose]()
  redirects.server.closeAllConnections()
  await closing(redirects.server)
  await other[Symbol.asyncDispose]()
  await api[Symbol.asyncDispose]()
})

const call = async (
  server: string,
  tool: string,
  args: Record<string, unknown> = {},
): Promise<Record<string, unknown>> => {
  const { data } = await client.call('tools/call', { server, tool, arguments: args })
  return (data as { structuredContent: Record<string, unknown> }).structuredContent
}
const parts = (secret: string): readonly string[] => [secret.slice(0, 9), secret.slice(9)]
const pidOf = async (server: string): Promise<number | null> => {
  const { instances } = (await client.call('servers/get', { server })) as unknown as {
    instances: readonly { pid: number | null }[]
  }
  return instances.find(({ pid }) => pid !== null)?.pid ?? null
}

describe('S000-U14', () => {
  test('raw execution is confined', async () => {
    const mine = join(at.folder, 'of-the-host')
    expect(await call('raw', 'read', { path: '/app/mcp.mjs' })).not.toEqual({ text: '' }) // it does read
    for (const path of [mine, '/etc/shadow', `/proc/${child.pid}/environ`, join(at.stateDir, 'journal.key')])
      expect([path, await call('raw', 'read', { path })]).toEqual([path, { text: '' }])
    expect(await call('raw', 'search', { parts: parts(token) })).toEqual({ found: [] })
    expect(await call('raw', 'dial', { host: '127.0.0.1', port: other.port })).not.toHaveProperty('connected')
  })

  test('a disallowed destination is rejected before any upstream byte', async () => {
    const before = { ...other.seen }
    for (const host of [api.host, '127.0.0.1', 'localhost'])
      await call('open', 'ask', { url: `http://${host}:${other.port}/secret` })
    expect(other.seen).toEqual(before)
    // By the proxy that clients are told of, names that nobody granted, at a port that is granted for another.
    const asked = api.asked.length
    for (const host of ['unlisted.test', `x.${api.host}`, `${api.host}.test`])
      await call('open', 'ask', { url: `http://${host}:${api.plainPort}/secret` })
    expect(api.asked).toHaveLength(asked)
    // The same request of a server that was granted just that arrives: somebody does listen.
    void call('wide', 'ask', { url: `http://${api.host}:${other.port}/secret` }).catch(() => null)
    await eventually(() => other.seen.bytes > before.bytes)
  })

  test('redirects and DNS do not widen', async () => {
    const before = { ...other.seen }
    const { status } = await call('open', 'ask', { url: `http://${api.host}:${redirects.port}/away` })
    expect(status).not.toBe(200)
    expect(other.seen).toEqual(before)
    // A listed name whose address lies within, without a word that it may: no server has it, and none is started.
    const inward = { ...serversFor(), open: reaches({ egress: [grant(api.plainPort, { private: false })] }) }
    const config = configOf(inward, { rules, credentials: { api: { env: 'TEST_TOKEN' } } })
    await writeFile(join(at.folder, 'inward.yaml'), JSON.stringify(config), { mode: 0o600 })
    const refused = await at.run(['verify', '--server', 'open', '--config', join(at.folder, 'inward.yaml')])
    expect([refused.status, refused.stderr]).toEqual([7, expect.stringContaining('(loopback)')])
    expect(await call('open', 'ask', { url: `http://${api.host}:${api.plainPort}/there` })).toMatchObject({
      status: 200,
    })
  })

  test('an unsupported control fails closed', async () => {
    // Two stand here, each by itself: the supervisor, before anything is planned, and the plan of every launch.
    await expect(call('wallless', 'say', { text: 'x' })).rejects.toMatchObject({
      code: 'ERR_SANDBOX_UNENFORCEABLE',
      message: expect.stringContaining('to start it without'),
    })
    expect(await pidOf('wallless')).toBeNull()
    expect(await client.call('servers/get', { server: 'wallless' })).toMatchObject({ state: 'failed' })
    const ran = await at.run(['verify', '--server', 'wallless', '--format', 'json'])
    expect([ran.status, ran.stdout]).toEqual([
      4,
      expect.stringContaining('which this version cannot enforce; remove it'),
    ])
  })

  test('extension grants are separate: what one server was given is in no other', async () => {
    expect(await call('extended', 'read', { path: '/workspace/a.txt' })).toEqual({ text: word })
    expect(await call('extended', 'variable', { name: 'REGION' })).toEqual({ value: 'north' })
    const url = `http://${api.host}:${api.plainPort}/extended`
    expect(await call('extended', 'ask', { url })).toMatchObject({ status: 200 })
    expect(await call('plain', 'read', { path: '/workspace/a.txt' })).toEqual({ text: '' })
    expect(await call('plain', 'variable', { name: 'REGION' })).toEqual({ value: null })
    const asked = api.asked.length
    expect((await call('plain', 'ask', { url }))['status']).not.toBe(200)
    expect(api.asked).toHaveLength(asked)
  })

  test('parallel authority does not bleed', async () => {
    const [one, two, denied] = await Promise.allSettled([
      call('own', 'identify', { ms: 500 }),
      call('own', 'identify', { ms: 500 }),
      call('own', 'read', { path: '/proc/self/environ' }),
    ])
    if (one.status !== 'fulfilled' || two.status !== 'fulfilled')
      throw new Error('a call that is allowed was not made')
    expect(one.value['boot']).not.toBe(two.value['boot'])
    expect([denied.status, denied.status === 'rejected' ? denied.reason : null]).toEqual([
      'rejected',
      expect.objectContaining({ code: 'ERR_POLICY_DENIED' }),
    ])
    const mine = { name: 'SECRET_WORD', word: parts(token) }
    expect(await call('own', 'has', mine)).toEqual({ has: true })
    // A server without the credential sees nothing of one that has it, while it has it.
    const holding = handled(call('own', 'identify', { ms: 800 }))
    await eventually(async () => (await pidOf('own')) !== null)
    expect(await call('raw', 'search', { parts: parts(token) })).toEqual({ found: [] })
    await holding
  })

  test('credentials do not leave their audience', async () => {
    const { value } = await call('swaps', 'variable', { name: 'API_TOKEN' })
    expect(value).toEqual(expect.any(String))
    expect(value).not.toContain(token)
    expect(await call('swaps', 'search', { parts: parts(token) })).toEqual({ found: [] })
    await call('swaps', 'ask', { url: `${api.url}/audience` })
    expect(api.asked.find(({ url }) => url === '/audience')?.authorization).toBe(`Bearer ${token}`)
    const elsewhere = `http://${api.host}:${api.plainPort}/elsewhere`
    await call('swaps', 'ask', { url: elsewhere }).catch(() => null)
    expect(api.asked.filter(({ url }) => url === '/elsewhere')).toEqual([])
    await expect(call('swaps', 'ask', { url: api.url })).rejects.toMatchObject({
      code: 'ERR_SCOPE_VIOLATION',
    })
  })

  test('revocation tears down what runs', async () => {
    const before = other.seen.connections
    const pending = call('revoked', 'ask', { url: `http://${api.host}:${other.port}/held` })
    const refused = handled(expect(pending).rejects.toThrow())
    await eventually(() => other.seen.connections > before)
    const pid = await pidOf('revoked')
    expect(pid).toEqual(expect.any(Number))
    await client.call('servers/quarantine', { server: 'revoked', reason: 'a test' })
    await refused
    await eventually(() => !existsSync(`/proc/${pid}`))
    expect(await pidOf('revoked')).toBeNull()
    await expect(call('revoked', 'say', { text: 'x' })).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_/),
    })
  })

  test('a stored entry is no authority', async () => {
    const say = (): Promise<unknown> =>
      client.call('tools/call', { server: 'stored', tool: 'echo', arguments: { text: 'x' } })
    await expect(say()).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
    await client.call('declarations/accept', { server: 'stored' })
    expect(await say()).toMatchObject({ type: 'output' })
    // Another version under the same name: what stands in the journal was said of the one before.
    const servers = { ...serversFor(), stored: fixture('echo', { acceptance: 'manual', version: '2' }) }
    const config = configOf(servers, { rules, credentials: { api: { env: 'TEST_TOKEN' } } })
    await writeFile(at.config, JSON.stringify(config), { mode: 0o600 })
    await client.call('daemon/reload', {})
    await expect(say()).rejects.toMatchObject({ code: 'ERR_IDENTITY_CHANGED' })
  })

  test('installing is inert', async () => {
    const code = await mkdtemp(join(at.folder, 'installed-'))
    await chmod(code, 0o755)
    const marker = join(at.folder, 'marker')
    const scripts = {
      preinstall: `touch ${marker}`,
      postinstall: `touch ${marker}`,
      prepare: `touch ${marker}`,
    }
    await writeFile(join(code, 'package.json'), JSON.stringify({ name: 'x', scripts }), { mode: 0o644 })
    await writeFile(join(code, 'installed.mjs'), 'setInterval(() => undefined, 1000)', { mode: 0o644 })
    const name = `installed-${code.slice(-6)}`
    const entry = {
      ...fixture('installed', { package: { source: code, target: '/app' } }),
      version: '1',
      trust: 'untrusted',
      tags: [],
      declaration: null,
      acceptance: 'manual',
      justification: 'a test',
      timeouts: { initialize_ms: 1000 },
    }
    const running = (): readonly number[] => processesWith('/app/installed.mjs')
    await client.call('servers/add', { server: name, entry })
    await client.call('servers/get', { server: name })
    expect([running(), await pidOf(name), existsSync(marker)]).toEqual([[], null, false])
    expect(await readdir(code)).toEqual(['installed.mjs', 'package.json'])
    // It is only what it is started for that makes it run.
    const start = client.call('servers/start', { server: name }).catch(() => null)
    await eventually(() => running().length > 0)
    await start
    expect(existsSync(marker)).toBe(false)
  })
})
