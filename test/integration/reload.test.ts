// `sallyport reload`: one daemon goes over to another configuration, and whoever is not meant does not notice.
import { once } from 'node:events'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { createTransport } from '../../src/client/transport.ts'
import { catalogue } from '../../src/errors.ts'
import type { AuditRecord } from '../../src/rpc/governed.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { configOf, daemon, fixture, type Place, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'
import { sharedDaemon } from '../support/shared-daemon.ts'
import { watching } from '../support/watching.ts'
import { witness } from '../support/witness.ts'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

const write = (at: Place, config: unknown): Promise<void> =>
  writeFile(at.config, typeof config === 'string' ? config : JSON.stringify(config))

/** A daemon, and where its journal stood when its test began. */
interface Begun extends TestDaemon {
  readonly since: number
}

const shared = sharedDaemon(configOf({}))

/** The daemon that the tests share, gone over to this configuration; of the servers of others none is in it. */
async function on(config: object): Promise<Begun> {
  const at = await shared.living()
  await write(at, config)
  await at.client.call('daemon/reload', {})
  const [last] = (await at.client.call('audit/query', { limit: 1 })).records
  return { ...at, since: last?.seq ?? 0 }
}

/** A daemon of a test's own: what it registers stays. */
async function begun(config: object): Promise<Begun> {
  return { ...(await daemon(config)), since: 0 }
}

const call = (client: Client, server: string, tool = 'echo', args: Record<string, unknown> = { a: 1 }) =>
  client.call('tools/call', { server, tool, arguments: args })

const records = async ({ client, since }: Begun, type: string): Promise<readonly AuditRecord[]> =>
  (await client.call('audit/query', { type, after: since, limit: 1000 })).records

const pidsOf = async (client: Client, server: string): Promise<readonly (number | null)[]> =>
  (await client.call('servers/get', { server })).instances.map(({ pid }) => pid)

const isAlive = (pid: number | null | undefined): boolean => {
  try {
    return process.kill(pid ?? -1, 0)
  } catch {
    return false
  }
}

async function attached(at: Place, server: string) {
  const mcp = new McpClient({ name: 'host', version: '1' })
  await mcp.connect(createTransport({ server, at: { runtimeDir: at.runtimeDir } }))
  const closed = new Promise<void>((resolve) => Object.assign(mcp, { onclose: resolve }))
  return {
    mcp,
    closed,
    echo: (args: Record<string, unknown>) => mcp.callTool({ name: 'echo', arguments: args }),
    [Symbol.asyncDispose]: () => mcp.close(),
  }
}

const allow = { permission: 'mcp:*:*', action: 'allow' }
const deny = { permission: 'mcp:*:echo', action: 'deny' }
const ask = { permission: 'mcp:*:echo', action: 'ask' }

describe('a reload', () => {
  test('stops the servers that it changes, begins those that it adds, ends those that it takes away, and no other', async () => {
    const before = { kept: fixture('echo'), other: fixture('echo'), gone: fixture('echo') }
    const at = await on(configOf(before))
    for (const name of Object.keys(before)) await call(at.client, name)
    await using kept = await attached(at, 'kept')
    await using other = await attached(at, 'other')
    await kept.echo({ n: 1 })
    await other.echo({ n: 1 })
    const pids = await pidsOf(at.client, 'kept')
    const ended = [...(await pidsOf(at.client, 'other')), ...(await pidsOf(at.client, 'gone'))]
    expect([pids.length, ended.length]).toEqual([2, 3])
    await write(
      at,
      configOf({
        fresh: fixture('echo', { start: 'eager' }),
        kept: fixture('echo'),
        other: fixture('echo', { env: { A: '1' } }),
      }),
    )
    expect(await at.client.call('daemon/reload', {})).toMatchObject({
      added: ['fresh'],
      changed: ['other'],
      removed: ['gone'],
      unchanged: ['kept'],
      left_out: [],
    })
    expect(await pidsOf(at.client, 'kept')).toEqual(pids)
    expect((await kept.echo({ n: 2 })).structuredContent).toEqual({ n: 2 })
    expect(ended.filter(isAlive)).toEqual([])
    await other.closed
    await expect(call(at.client, 'gone')).rejects.toMatchObject({ code: 'ERR_SERVER_NOT_FOUND' })
    expect((await call(at.client, 'other')).type).toBe('output')
    await eventually(
      async () => (await at.client.call('servers/get', { server: 'fresh' })).state === 'connected',
    )
    expect(await records(at, 'config.applied')).toHaveLength(1)
    expect((await records(at, 'config.effect'))[0]?.body).toMatchObject({
      changed: ['other'],
      by: String(process.getuid?.()),
      peer: { pid: process.pid },
    })
    await expectAftermath(at, at.client)
  })

  test('puts other rules before the next call of a session that goes on', async () => {
    const at = await on(configOf({ echo: fixture('echo') }))
    await using host = await attached(at, 'echo')
    await host.echo({ n: 1 })
    const pids = await pidsOf(at.client, 'echo')
    await write(at, configOf({ echo: fixture('echo') }, { rules: [deny, allow] }))
    await at.client.call('daemon/reload', {})
    await expect(host.echo({ n: 2 })).rejects.toMatchObject({ data: { code: 'ERR_POLICY_DENIED' } })
    expect((await host.mcp.listTools()).tools.map(({ name }) => name)).not.toContain('echo')
    await expect(call(at.client, 'echo')).rejects.toMatchObject({ code: 'ERR_POLICY_DENIED' })
    const explained = await at.client.call('policy/explain', { server: 'echo', tool: 'echo' })
    expect(explained).toMatchObject({ action: 'deny' })
    await write(at, configOf({ echo: fixture('echo') }))
    await at.client.call('daemon/reload', {})
    expect((await host.echo({ n: 3 })).structuredContent).toEqual({ n: 3 })
    expect(await pidsOf(at.client, 'echo')).toContain(pids[0])
  })

  test('holds for a session that a project narrows, too: what the project denies stays denied', async () => {
    const at = await on(configOf({ echo: fixture('echo') }))
    const project = join(at.folder, 'project')
    await mkdir(project)
    const narrow = { version: 1, rules: [{ permission: 'mcp:*:fail', action: 'deny' }] }
    await writeFile(join(project, '.sallyport.yaml'), JSON.stringify(narrow), { mode: 0o600 })
    const mcp = new McpClient({ name: 'host', version: '1' })
    await mcp.connect(createTransport({ server: 'echo', at: { runtimeDir: at.runtimeDir }, project }))
    const use = (name: string) => mcp.callTool({ name, arguments: {} })
    const denied = { data: { code: 'ERR_POLICY_DENIED' } }
    await use('echo')
    await expect(use('fail')).rejects.toMatchObject(denied)
    await write(at, configOf({ echo: fixture('echo') }, { rules: [deny, allow] }))
    await at.client.call('daemon/reload', {})
    await expect(use('echo')).rejects.toMatchObject(denied)
    await expect(use('fail')).rejects.toMatchObject(denied)
    await mcp.close()
  })

  test('takes away a mount from what runs: the process ends, and the next one does not see it', async () => {
    const at = await on(configOf({}))
    await writeFile(join(at.folder, 'profile.yaml'), '')
    const docs = join(at.folder, 'docs')
    await mkdir(docs)
    await writeFile(join(docs, 'letter'), 'dear', { mode: 0o644 })
    const profile = {
      version: 1,
      name: 'reads',
      extends: 'node',
      widens: true,
      filesystem: { mounts: 'read' },
    }
    await mkdir(join(at.folder, 'profiles'), { recursive: true })
    await writeFile(join(at.folder, 'profiles/reads.yaml'), JSON.stringify(profile), { mode: 0o600 })
    const mounts = [{ source: docs, target: '/workspace', access: 'read', reason: 'the letter' }]
    const entry = (more: object) => fixture('hostile', { profile: 'reads', ...more })
    const read = () => call(at.client, 'reader', 'read_files', { paths: ['/workspace/letter'] })
    await write(at, configOf({ reader: entry({ mounts }) }))
    await at.client.call('daemon/reload', {})
    expect(JSON.stringify(await read())).toContain('dear')
    const [pid] = await pidsOf(at.client, 'reader')
    expect(isAlive(pid)).toBe(true)
    await write(at, configOf({ reader: entry({}) }))
    expect(await at.client.call('daemon/reload', {})).toMatchObject({ changed: ['reader'] })
    expect(isAlive(pid)).toBe(false)
    expect(JSON.stringify(await read())).not.toContain('dear')
    // What a profile grants is the server's grant, too.
    const [again] = await pidsOf(at.client, 'reader')
    const less = { ...profile, limits: { pids: 50 } }
    await writeFile(join(at.folder, 'profiles/reads.yaml'), JSON.stringify(less), { mode: 0o600 })
    expect(await at.client.call('daemon/reload', {})).toMatchObject({ changed: ['reader'] })
    expect(isAlive(again)).toBe(false)
  })

  test('takes away a way out and a credential from what runs', async () => {
    const reach = { profile: 'allowlisted-node' }
    const profile = {
      version: 1,
      name: 'allowlisted-node',
      extends: 'node',
      widens: true,
      network: { mode: 'allowlist', allow: [{ host: 'api.example.com', port: 443, reason: 'a test' }] },
      credentials: ['egress'],
    }
    const egress = [{ host: 'api.example.com', port: 443, reason: 'a test' }]
    const key = { use: 'key', inject: 'egress', as: 'KEY', hosts: ['api.example.com:443'] }
    const at = await on(configOf({}))
    await mkdir(join(at.folder, 'profiles'), { recursive: true })
    await writeFile(join(at.folder, 'profiles/allowlisted-node.yaml'), JSON.stringify(profile), {
      mode: 0o600,
    })
    for (const name of ['one', 'two'])
      await writeFile(join(at.folder, name), `a-secret-of-some-length-${name}`, { mode: 0o600 })
    const configured = (entry: object, source: string) =>
      configOf(
        { out: fixture('echo', { ...reach, ...entry }), kept: fixture('echo') },
        { credentials: { key: { file: join(at.folder, source) } } },
      )
    const reloaded = async (config: object) => {
      await write(at, config)
      return at.client.call('daemon/reload', {})
    }
    await reloaded(configured({ egress, credentials: [key] }, 'one'))
    for (const server of ['out', 'kept']) await at.client.call('servers/start', { server })
    const kept = await pidsOf(at.client, 'kept')
    for (const config of [
      configured({ egress, credentials: [key] }, 'two'), // another source of the same name
      configured({ egress }, 'two'),
      configured({}, 'two'),
    ]) {
      await at.client.call('servers/start', { server: 'out' })
      const [pid] = await pidsOf(at.client, 'out')
      expect(await reloaded(config)).toMatchObject({ changed: ['out'], unchanged: ['kept'] })
      expect(isAlive(pid)).toBe(false)
    }
    await at.client.call('servers/start', { server: 'out' })
    expect(await pidsOf(at.client, 'kept')).toEqual(kept)
  })

  test('of a file that is wrong changes nothing, and says what a start would say', async () => {
    const at = await on(configOf({ echo: fixture('echo') }))
    await call(at.client, 'echo')
    const pids = await pidsOf(at.client, 'echo')
    await write(at, configOf({ echo: fixture('echo', { timeout: 3 }) }, { rules: [deny] }))
    const elsewhere = {
      SALLYPORT_RUNTIME_DIR: join(at.folder, 'b'),
      SALLYPORT_STATE_DIR: join(at.folder, 'c'),
    }
    const start = await at.run(['serve'], { env: elsewhere })
    const reload = await at.run(['reload'])
    expect(reload.status).toBe(7)
    expect(reload.stderr).toContain('timeout')
    expect(reload.stderr).toBe(start.stderr)
    await write(at, 'version: [')
    expect((await at.run(['reload'])).status).toBe(7)
    expect((await call(at.client, 'echo')).type).toBe('output')
    expect(await pidsOf(at.client, 'echo')).toEqual(pids)
    const refused = await records(at, 'config.refused')
    expect(refused.map(({ body }) => (body as { code: string }).code)).toEqual([
      'ERR_CONFIG_INVALID',
      'ERR_CONFIG_SYNTAX',
    ])
    expect(await records(at, 'config.applied')).toEqual([])
  })

  test('refuses by name what takes a restart, and changes nothing else with it', async () => {
    const at = await on(configOf({ echo: fixture('echo') }))
    const restart = { host_group: 'root', journal: { durability: 'fsync', keep_days: 3 } }
    await write(at, configOf({}, restart))
    await expect(at.client.call('daemon/reload', {})).rejects.toMatchObject({
      code: 'ERR_CONFIG_RESTART',
      message: expect.stringContaining('host_group, journal.durability, journal.keep_days'),
    })
    expect((await call(at.client, 'echo')).type).toBe('output')
    await write(at, configOf({}, { require_separation: true }))
    await expect(at.client.call('daemon/reload', {})).rejects.toMatchObject({ code: 'ERR_SEPARATION' })
  })

  test('warns of rules about servers that are not there, as a start does, and names the one that was meant', async () => {
    const rules = ['Wh', 'nope', 'wh', 'added', '*', 'w?'].map((server) => ({
      permission: `mcp:${server}:echo`,
      action: 'deny',
    }))
    const at = await on(configOf({ wh: fixture('echo') }, { rules }))
    const entry = fixture('echo', { version: '1', justification: 'a test', tags: [] })
    await at.client.call('servers/add', { server: 'added', entry: entry as Record<string, unknown> })
    expect((await at.client.call('daemon/reload', {})).warnings).toEqual([
      'sallyport.yaml rules[0] is about the server Wh, which is not there; did you mean wh?',
    ])
    await at.client.call('servers/remove', { server: 'added' })
    expect((await at.client.call('daemon/reload', {})).warnings).toHaveLength(1)
  })

  test('follows a SIGHUP, and one that is refused ends nothing', async () => {
    const at = await on(configOf({ echo: fixture('echo') }))
    await write(at, '{}')
    at.process.kill('SIGHUP')
    await eventually(async () => (await records(at, 'config.refused')).length === 1)
    await write(at, configOf({ other: fixture('echo') }))
    at.process.kill('SIGHUP')
    await eventually(
      async () => (await at.client.call('servers/list', {})).servers[0]?.name === 'other',
      5000,
    )
    expect(at.process.exitCode).toBeNull()
  })

  test('by a SIGHUP comes once for all that were sent before its turn, with what the last was sent for', async () => {
    const stop = { eof_ms: 60_000, term_ms: 60_000 }
    const at = await on(configOf({ stubborn: fixture('ignore-sigterm', { stop }) }))
    const { pid } = await at.client
      .call('servers/start', { server: 'stubborn' })
      .then(
        async () => (await at.client.call('servers/get', { server: 'stubborn' })).instances[0] ?? { pid: 0 },
      )
    await write(at, configOf({}))
    at.process.kill('SIGHUP')
    // It waits for the server that it takes away.
    await eventually(async () => (await at.client.call('servers/list', {})).servers.length === 0)
    for (let n = 1; n <= 50; n++) {
      await write(at, configOf({ [`s${n}`]: fixture('echo') }))
      at.process.kill('SIGHUP')
      // Which answers when the signal was heard: two of a kind are one to the kernel.
      await at.client.call('servers/list', {})
    }
    process.kill(pid ?? 0, 'SIGKILL')
    await eventually(async () => (await at.client.call('servers/list', {})).servers[0]?.name === 's50')
    await expectAftermath(at, at.client)
    expect(await records(at, 'config.effect')).toHaveLength(2)
  })

  test('by a SIGHUP is not noticed beside the server that it changes: same process, same session, a call over it', async () => {
    await using seen = await witness()
    const chaotic = fixture('chaotic', {
      args: ['/app/chaotic.mjs', '/seen/chaotic'],
      profile: 'workspace-write',
      mounts: [seen.mount],
    })
    const config = (env: object) => configOf({ chaotic, other: fixture('echo', { env }) })
    const at = await on(config({}))
    for (const server of ['chaotic', 'other']) await at.client.call('servers/start', { server })
    await using host = await attached(at, 'chaotic')
    await using affected = await attached(at, 'other')
    const pids = await pidsOf(at.client, 'chaotic')
    const ended = await pidsOf(at.client, 'other')
    expect([pids.length, ended.length]).toEqual([2, 2])
    const effect = (token: string) => ({ token, way: 'waits' })
    const inSession = handled(host.mcp.callTool({ name: 'effect', arguments: effect('session') }))
    const byVerb = handled(call(at.client, 'chaotic', 'effect', effect('verb')))
    const tokens = async () =>
      (await readFile(join(seen.source, 'chaotic'), 'utf8')).split('\n').filter(Boolean).toSorted()
    await eventually(async () => (await tokens()).length === 2)
    await write(at, config({ A: '1' }))
    at.process.kill('SIGHUP')
    await affected.closed
    await eventually(async () => (await records(at, 'config.effect')).length === 1)
    expect(ended.filter(isAlive)).toEqual([])
    expect(await pidsOf(at.client, 'chaotic')).toEqual(pids)
    await writeFile(join(seen.source, 'chaotic.go'), '')
    expect((await inSession).structuredContent).toEqual({ token: 'session' })
    expect(await byVerb).toMatchObject({ data: { structuredContent: { token: 'verb' } } })
    expect(await tokens()).toEqual(['session', 'verb'])
    const outcomes = (await records(at, 'call.outcome')).map(({ body }) => body)
    expect(outcomes).toMatchObject([{ outcome: 'result' }, { outcome: 'result' }])
    expect((await call(at.client, 'other')).type).toBe('output')
    await expectAftermath(at, at.client)
  })

  test('is the operator’s: a host is refused', async () => {
    const at = await on(configOf({ echo: fixture('echo') }))
    await write(at, configOf({}))
    await using host = await at.connect('host')
    await expect(host.call('daemon/reload', {})).rejects.toMatchObject({ code: 'ERR_NOT_AUTHORISED' })
    expect(catalogue.ERR_NOT_AUTHORISED.exit).toBe(6)
    expect((await host.call('servers/list', {})).servers).toHaveLength(1)
  })

  test('decides a call that waits for an approval again: denied, allowed, or asked anew', async () => {
    const more = (rules: readonly object[]) => configOf({ echo: fixture('echo') }, { rules })
    const at = await on(more([ask, allow]))
    await using host = await at.connect('host')
    await using watch = await watching(at.client)
    const first = handled(call(host, 'echo'))
    await watch.next()
    await write(at, more([deny, allow]))
    await at.client.call('daemon/reload', {})
    await expect(first).rejects.toMatchObject({ code: 'ERR_POLICY_DENIED' })
    await write(at, more([ask, allow]))
    await at.client.call('daemon/reload', {})
    const second = handled(call(host, 'echo'))
    const { id } = await watch.next(2)
    await write(at, more([ask, ask, allow]))
    await at.client.call('daemon/reload', {})
    const asked = await watch.next(3)
    await expect(at.client.call('approvals/approve', { id })).rejects.toMatchObject({
      code: 'ERR_APPROVAL_NOT_FOUND',
    })
    await at.client.call('approvals/approve', { id: asked.id })
    expect((await second).type).toBe('output')
    const third = handled(call(host, 'echo'))
    await watch.next(4)
    await write(at, more([allow]))
    await at.client.call('daemon/reload', {})
    expect((await third).type).toBe('output')
  })

  test('ends the approvals that stood under the former policy, and no others', async () => {
    const more = (rules: readonly object[], also: object = {}) =>
      configOf({ stands: fixture('echo'), ...also }, { rules })
    const at = await on(more([ask, allow]))
    await using host = await at.connect('host')
    await using watch = await watching(at.client)
    const first = handled(call(host, 'stands'))
    await at.client.call('approvals/approve', { id: (await watch.next()).id, scope: 'policy' })
    await first
    await write(at, more([ask, allow], { added: fixture('echo') }))
    await at.client.call('daemon/reload', {})
    await call(host, 'stands') // it stands
    await write(at, more([ask, deny]))
    await at.client.call('daemon/reload', {})
    await write(at, more([ask, allow]))
    await at.client.call('daemon/reload', {})
    expect((await at.client.call('approvals/list', {})).standing).toEqual([])
    const again = handled(call(host, 'stands'))
    await at.client.call('approvals/deny', { id: (await watch.next(2)).id })
    await expect(again).rejects.toMatchObject({ code: 'ERR_APPROVAL_DENIED' })
  })

  test('measures trust anew by other thresholds', async () => {
    const untrusted = { earns: fixture('echo', { trust: 'untrusted', tools: { allow: ['echo'] } }) }
    const exact = [{ permission: 'mcp:earns:echo', action: 'allow' }]
    const at = await on(configOf(untrusted, { rules: exact }))
    for (let n = 0; n < 3; n++) await call(at.client, 'earns')
    const tier = async () => (await at.client.call('trust/list', { server: 'earns' })).trust[0]?.tier
    await eventually(
      async () => (await at.client.call('trust/list', { server: 'earns' })).trust[0]?.evidence === 3,
      5000,
    )
    expect(await tier()).toBe('untrusted')
    await expect(call(at.client, 'earns', 'fail')).rejects.toThrow()
    await write(at, configOf(untrusted, { rules: [allow], trust: { provisional_after: 3 } }))
    await at.client.call('daemon/reload', {})
    expect(await tier()).toBe('provisional')
    expect((await call(at.client, 'earns')).type).toBe('output') // by a pattern, since it has earned it
  })

  test('keeps the name of a registration that it leaves out, and what was accepted under it', async () => {
    const dynamic = { enabled: true, profile: 'node', tools: { allow: ['echo'] } }
    await using at = await begun(configOf({}, { dynamic }))
    await using host = await at.connect('host')
    const profile = join(at.folder, 'profiles/own.yaml')
    await mkdir(dirname(profile))
    const withProfile = async (): Promise<unknown> => {
      await writeFile(profile, '{ version: 1, name: own, extends: node }', { mode: 0o600 })
      return at.client.call('daemon/reload', {})
    }
    await withProfile()
    const stated = { version: '1', justification: 'a try', tags: [], profile: 'own' }
    const entry = { ...fixture('echo', stated) }
    await at.client.call('servers/add', { server: 'added', entry, directory: at.folder })
    await call(host, 'added')
    await rm(profile)
    expect(await at.client.call('daemon/reload', {})).toMatchObject({ left_out: [{ server: 'added' }] })
    const code = { command: 'node', args: ['/app/echo.mjs'], package: { source: fixtures, target: '/app' } }
    await expect(host.call('servers/launch', { name: 'added', ...code })).rejects.toMatchObject({
      code: 'ERR_SERVER_EXISTS',
    })
    await withProfile()
    await call(host, 'added')
    expect(await records(at, 'surface.accepted')).toHaveLength(1)
  })

  test('keeps what was launched and added; what it does not allow any more goes', async () => {
    const dynamic = { enabled: true, profile: 'node', tools: { allow: ['echo'] } }
    await using at = await begun(configOf({ base: fixture('echo') }, { dynamic }))
    await using host = await at.connect('host')
    const source = { command: 'node', args: ['/app/echo.mjs'], package: { source: fixtures, target: '/app' } }
    await host.call('servers/launch', { name: 'mine', ...source })
    const entry = fixture('echo', { version: '1', justification: 'a try', tags: [] }) as Record<
      string,
      unknown
    >
    await at.client.call('servers/add', { server: 'added', entry })
    for (const server of ['mine', 'added']) await call(host, server)
    const pids = [...(await pidsOf(host, 'mine')), ...(await pidsOf(host, 'added'))]
    await write(at, configOf({ base: fixture('echo'), more: fixture('echo') }, { dynamic }))
    expect(await at.client.call('daemon/reload', {})).toMatchObject({
      changed: [],
      removed: [],
      added: ['more'],
    })
    expect([...(await pidsOf(host, 'mine')), ...(await pidsOf(host, 'added'))]).toEqual(pids)
    expect(await records(at, 'dynamic.applied')).toHaveLength(1)
    await write(
      at,
      configOf({ base: fixture('echo') }, { dynamic: { ...dynamic, tools: { allow: ['fail'] } } }),
    )
    expect(await at.client.call('daemon/reload', {})).toMatchObject({
      changed: ['mine'],
      unchanged: ['base', 'added'],
    })
    await expect(call(host, 'mine')).rejects.toMatchObject({ code: 'ERR_POLICY_DENIED' })
    expect(await records(at, 'dynamic.applied')).toHaveLength(2)
    await write(at, configOf({}, { allowed_commands: ['sh'] }))
    expect(await at.client.call('daemon/reload', {})).toMatchObject({
      removed: expect.arrayContaining(['mine']),
    })
    await expect(call(host, 'mine')).rejects.toMatchObject({ code: 'ERR_SERVER_NOT_FOUND' })
    expect(pids.filter(isAlive)).toEqual([])
  })

  test('is the word that other code is meant: what was refused for it runs again', async () => {
    const at = await on(configOf({}))
    const app = join(at.folder, 'app')
    await cp(fixtures, app, { recursive: true })
    const entry = fixture('echo', { package: { source: app, target: '/app' } })
    await write(at, configOf({ own: entry, kept: fixture('echo') }))
    await at.client.call('daemon/reload', {})
    for (const server of ['own', 'kept']) await call(at.client, server)
    await at.client.call('servers/stop', { server: 'own' })
    await writeFile(join(app, 'new.mjs'), '// more')
    await expect(call(at.client, 'own')).rejects.toThrow(/reload the daemon|unavailable/)
    expect(await at.client.call('daemon/reload', {})).toMatchObject({ changed: ['own'], unchanged: ['kept'] })
    await at.client.call('servers/start', { server: 'own' })
    await expect(call(at.client, 'own')).rejects.toThrow(/accepted was/) // other code takes an acceptance of its own
    await at.client.call('declarations/accept', { server: 'own' })
    expect((await call(at.client, 'own')).type).toBe('output')
  })

  test('waits for the one before it, and loses no call that is made meanwhile', async () => {
    const config = (n: number) =>
      configOf({ kept: fixture('echo'), other: fixture('echo', { env: { N: String(n) } }) })
    const at = await on(config(0))
    await using host = await at.connect('host')
    for (const server of ['kept', 'other']) await call(host, server)
    const over = new AbortController()
    let kept = 0
    const others: (string | undefined)[] = []
    const callers = [
      ...Array.from({ length: 4 }, async () => {
        while (!over.signal.aborted) {
          expect((await call(host, 'kept')).type).toBe('output')
          kept += 1
        }
      }),
      ...Array.from({ length: 2 }, async () => {
        while (!over.signal.aborted)
          others.push(
            await call(host, 'other').then(
              ({ type }) => type,
              ({ code }: { code: string }) => code,
            ),
          )
      }),
    ].map(handled)
    const pids = await pidsOf(host, 'kept')
    for (let n = 1; n <= 3; n++) {
      await write(at, config(n))
      await Promise.all([at.client.call('daemon/reload', {}), at.client.call('daemon/reload', {})])
    }
    over.abort()
    await Promise.all(callers)
    expect(kept).toBeGreaterThan(0)
    expect(await pidsOf(host, 'kept')).toEqual(pids)
    expect((await call(host, 'other')).type).toBe('output')
    expect(new Set(others)).toContain('output')
    expect(
      [...new Set(others)].filter(
        (code) =>
          !/^(output|ERR_SERVER_UNAVAILABLE|ERR_PERMIT_REFUSED|ERR_DECLARATION_\w+|ERR_TOOL_NOT_FOUND)$/.test(
            code ?? '',
          ),
      ),
    ).toEqual([])
    const effects = await records(at, 'config.effect')
    expect(effects.map(({ body }) => (body as { changed: string[] }).changed)).toEqual([
      ['other'],
      [],
      ['other'],
      [],
      ['other'],
      [],
    ])
  })

  test('of a server that is just starting ends that start, and leaves nothing of it', async () => {
    const at = await on(configOf({ slow: fixture('never-initialize') }))
    const starting = handled(at.client.call('servers/start', { server: 'slow' }))
    const [pid] = await eventually(async () => {
      const pids = await pidsOf(at.client, 'slow')
      return typeof pids[0] === 'number' ? pids : null
    })
    await write(at, configOf({ slow: fixture('echo') }))
    expect(await at.client.call('daemon/reload', {})).toMatchObject({ changed: ['slow'] })
    await expect(starting).rejects.toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
    expect(isAlive(pid)).toBe(false)
    expect((await call(at.client, 'slow')).type).toBe('output')
  })

  test('that is under way when the daemon is told to end does not keep it from ending', async () => {
    const at = await on(configOf({ stubborn: fixture('ignore-sigterm') }))
    await at.client.call('servers/start', { server: 'stubborn' })
    const [pid] = await pidsOf(at.client, 'stubborn')
    await write(at, configOf({}))
    const reloading = at.client.call('daemon/reload', {}).catch(({ code }: { code: string }) => code)
    await eventually(async () => (await at.client.call('servers/list', {})).servers.length === 0)
    const ended = once(at.process, 'exit')
    await at.client.call('daemon/shutdown', {})
    await expect(at.client.call('daemon/reload', {})).rejects.toThrow()
    await reloading
    expect(await ended).toEqual([0, null])
    expect(isAlive(pid)).toBe(false)
  })
})
