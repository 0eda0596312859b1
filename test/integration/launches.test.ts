// What hosts launch, by hosts that mean no good: names, code and haste, and what is left when it is gone.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { chmod, cp, mkdir, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configOf, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { sharedDaemon } from '../support/shared-daemon.ts'
import { bodiesOf, recordsOf } from '../support/witness.ts'

const mebibyte = 1024 ** 2
const dynamic = { enabled: true, profile: 'node', tools: { allow: ['echo'] } }
const fixtures = join(import.meta.dirname, '../fixtures/servers')

/** What a record of a launch says of the operator's word that it was made on. */
interface Launched {
  readonly server: string
  readonly entry: { readonly tools: { readonly allow: readonly string[] } }
  readonly under: { readonly seq: number }
}

const shared = sharedDaemon(configOf({ base: fixture('echo') }, { dynamic }))
let at: TestDaemon
let host: RawCaller
let isConfigured = true
beforeEach(async () => {
  at = await shared.living()
  await chmod(at.folder, 0o711)
  host = await open()
})
afterEach(async ({ task }) => {
  host[Symbol.dispose]()
  if (task.result?.state !== 'fail') await tidy() // else it goes
  isConfigured = true
})

/** The next test finds nothing launched, and the first configuration. */
async function tidy(): Promise<void> {
  const { servers } = await at.client.call('servers/list', {})
  for (const { name, scope } of servers)
    if (scope === 'dynamic') await at.client.call('servers/remove', { server: name })
  if (!isConfigured) await reload({ base: fixture('echo') })
}

const hostSocket = (): string => join(at.runtimeDir, 'host/host.sock')
const open = (): Promise<RawCaller> => RawCaller.open(hostSocket())
const requestOf = (name: string, source = fixtures, further: readonly string[] = []) => ({
  name,
  command: 'node',
  args: ['/app/echo.mjs'],
  package: { source, target: '/app', with: further },
})
const launch = (name: string, ...more: [string?, (readonly string[])?]) =>
  host.ask('servers/launch', requestOf(name, ...more))
const echo = (server: string) => host.ask('tools/call', { server, tool: 'echo', arguments: { text: 'x' } })
const reload = (servers: Readonly<Record<string, object>>, more: object = {}) =>
  writeFile(at.config, JSON.stringify(configOf(servers, { dynamic, ...more }))).then(() => {
    isConfigured = false
    return at.client.call('daemon/reload', {})
  })

/** A folder with a server, and with a file of that many bytes that takes no room on the disk. */
async function folderOf(name: string, bytes: number): Promise<string> {
  const folder = join(at.folder, name)
  await mkdir(folder)
  await cp(join(fixtures, 'echo.mjs'), join(folder, 'echo.mjs'))
  await writeFile(join(folder, 'data'), '')
  await truncate(join(folder, 'data'), bytes)
  return folder
}

test('whose call it was that ended with the server is told who removed it', async () => {
  await reload({ base: fixture('echo') }, { dynamic: { ...dynamic, tools: { allow: ['wait'] } } })
  const request = { ...requestOf('slow'), args: ['/app/slow.mjs'] }
  expect((await host.ask('servers/launch', request)).error).toBeUndefined()
  using other = await open()
  const call = other.ask('tools/call', { server: 'slow', tool: 'wait', arguments: { ms: 60_000 } })
  await eventually(() => bodiesOf(at.stateDir, 'call.intent').some(({ server }) => server === 'slow'))
  await host.ask('servers/remove', { server: 'slow' })
  const uid = process.getuid?.()
  expect((await call).error?.message).toBe(`mcp server slow is unavailable: host ${uid} removed it`)
})

test('nothing is known of what was launched, called and removed, whatever its names were', async () => {
  const names = ['known-1', 'known-2', 'known-1', 'known-3']
  for (const name of names) {
    expect((await launch(name)).error).toBeUndefined()
    expect((await echo(name)).result).toMatchObject({ type: 'output' })
    expect((await host.ask('servers/remove', { server: name })).result).toMatchObject({ removed: name })
  }
  await echo('base')
  const { trust } = await at.client.call('trust/list', {})
  const known = new Set(trust.map(({ server }) => server))
  expect([...names, 'base'].filter((server) => known.has(server))).toEqual(['base'])
  const accepted = await at.client.call('audit/query', { type: 'surface.accepted', limit: 100 })
  const versions = accepted.records.map(({ body }) => body as { server: string; declarationVersion: number })
  const own = versions.filter(({ server }) => [...names, 'base'].includes(server))
  expect(new Set(own.map(({ server, declarationVersion: n }) => `${server}#${n}`)).size).toBe(5)
})

test.each(['sallyport', 'Sallyport', 'SALLYPORT', 'saIlyport', 'sa11yp0rt'])(
  'what reads as the name of what the daemon answers itself is given to no server, by a launch or a registration: %s',
  async (server) => {
    expect((await launch(server)).error?.data.code).toBe('ERR_SERVER_EXISTS')
    const entry = fixture('echo', { version: '1', justification: 'a try', tags: [] }) as Record<
      string,
      unknown
    >
    const added = at.client.call('servers/add', { server, entry })
    await expect(added).rejects.toMatchObject({ code: 'ERR_SERVER_EXISTS' })
  },
)

test.each(['/proc', '/usr/lib/app', '/home/user', '/sallyport'])(
  'code that could stand in no sandbox is not launched, and takes nobody’s place: %s',
  async (target) => {
    const request = requestOf('misplaced')
    const asked = await host.ask('servers/launch', { ...request, package: { ...request.package, target } })
    expect(asked.error).toMatchObject({
      message: expect.stringMatching('which is the sandbox’s own; choose a target such as'),
      data: { code: 'ERR_MOUNT_REFUSED' },
    })
    const { servers } = await at.client.call('servers/list', {})
    expect(servers.filter(({ scope }) => scope === 'dynamic')).toEqual([])
  },
)

test.each(['/dev/stdin', '/dev/fd/0', '/proc/self/fd/0'])(
  'what others write while it runs is no script, and takes nobody’s place: %s',
  async (script) => {
    const asked = await host.ask('servers/launch', { ...requestOf('from-stdin'), args: [script] })
    expect(asked.error).toMatchObject({ data: { code: 'ERR_ARGUMENT_REFUSED' } })
    const { servers } = await at.client.call('servers/list', {})
    expect(servers.filter(({ scope }) => scope === 'dynamic')).toEqual([])
  },
)

test('nor does a name of which a rule was written let a tool that nobody trusts pass unasked', async () => {
  const rules = [{ permission: 'mcp:meant:echo', action: 'allow' }]
  await reload({ base: fixture('echo') }, { dynamic: { ...dynamic, trust: 'untrusted' }, rules })
  expect((await launch('meant')).error).toBeUndefined()
  expect((await echo('meant')).error?.data.code).toBe('ERR_APPROVAL_UNAVAILABLE')
})

test.each(['Base', 'BASE', 'basE'])('nor is one that reads as that of another server: %s', async (server) => {
  const { error } = await launch(server)
  expect(error?.data.code).toBe('ERR_SERVER_EXISTS')
  expect(error?.message).toContain(`the name ${server} reads as base, which is taken`)
})

test('a name that the operator’s server had stays that one’s, with what was accepted under it', async () => {
  expect((await echo('base')).error).toBeUndefined()
  await reload({})
  expect((await launch('base')).error?.data.code).toBe('ERR_SERVER_EXISTS')
  await reload({ base: fixture('echo', { acceptance: 'manual' }) })
  expect((await echo('base')).result).toMatchObject({ type: 'output' })
})

test('a name that the operator’s server had stays that one’s, though nothing was ever accepted under it', async () => {
  const stated = { version: '1', justification: 'a try', tags: [] }
  const entry = fixture('echo', stated) as Record<string, unknown>
  await at.client.call('servers/add', { server: 'was-added', entry })
  await at.client.call('servers/remove', { server: 'was-added' })
  await reload({ base: fixture('echo'), 'was-configured': fixture('echo') })
  await reload({ base: fixture('echo') })
  for (const name of ['was-added', 'Was-added', 'was-configured', 'was-conf1gured'])
    expect((await launch(name)).error?.data.code).toBe('ERR_SERVER_EXISTS')
})

test('what is quarantined takes its host’s room until it is released, gone or not', async () => {
  await reload({}, { max_dynamic_servers: 2 })
  for (const name of ['room-one', 'room-two']) {
    expect(
      (await launch(name, await folderOf(name, name.length + (name === 'room-one' ? 1 : 2)))).error,
    ).toBeUndefined()
    await at.client.call('servers/quarantine', { server: name })
    await host.ask('servers/remove', { server: name })
  }
  expect((await launch('room-three')).error).toMatchObject({
    message: expect.stringContaining('2 of them quarantined'),
    data: { code: 'ERR_DYNAMIC_REFUSED' },
  })
  await at.client.call('servers/release', { name: 'room-one' })
  expect((await launch('room-three')).error).toBeUndefined()
  await at.client.call('servers/release', { name: 'room-two' })
})

test('a name is one’s who was first to ask for it, host or operator', async () => {
  const stated = { version: '1', justification: 'a try', tags: [] }
  const entry = fixture('echo', stated) as Record<string, unknown>
  for (let n = 0; n < 8; n += 1) {
    const server = `same-${n}`
    const [launched, added] = await Promise.all([
      launch(server),
      at.client.call('servers/add', { server, entry }).catch((error: unknown) => error),
    ])
    const isLaunched = launched.error === undefined
    expect((await at.client.call('servers/get', { server })).scope).toBe(
      isLaunched ? 'dynamic' : 'registered',
    )
    const other: unknown = isLaunched ? added : launched.error.data
    expect(other).toMatchObject({ code: 'ERR_SERVER_EXISTS' })
    await at.client.call('servers/remove', { server })
  }
})

test('a reload ends, however fast hosts launch and remove', async () => {
  const over = new AbortController()
  const churn = async (name: string): Promise<number> => {
    using own = await open()
    let launched = 0
    while (!over.signal.aborted) {
      if ((await own.ask('servers/launch', requestOf(name))).error === undefined) launched += 1
      await own.ask('servers/remove', { server: name })
    }
    return launched
  }
  // Each is judged anew by a reload, which takes longer than to launch one more.
  for (let n = 0; n < 8; n += 1) expect((await launch(`kept-${n}`)).error).toBeUndefined()
  const churning = ['a', 'b'].map(churn).map(handled)
  try {
    for (const more of ['x', 'y', 'z'])
      expect(await reload({ base: fixture('echo'), [more]: fixture('echo') })).toMatchObject({
        added: [more],
      })
  } finally {
    over.abort()
  }
  for (const launched of await Promise.all(churning)) expect(launched).toBeGreaterThan(0)
})

test('a launch that is made while a reload looks at what runs names the settings that it was made under', async () => {
  const large = await folderOf('read-again', 100 * mebibyte)
  expect((await launch('read-again', large)).error).toBeUndefined()
  await utimes(join(large, 'data'), 1, 1) // so that it is read again
  const over = new AbortController()
  const other = { dynamic: { ...dynamic, tools: { allow: ['fail'] } }, max_dynamic_servers: 1000 }
  const reloading = handled(reload({}, other).finally(() => over.abort()))
  for (let n = 0; !over.signal.aborted; n += 1) {
    expect((await launch(`n-${n}`)).error).toBeUndefined()
    await host.ask('servers/remove', { server: `n-${n}` })
  }
  expect(await reloading).toMatchObject({ changed: expect.arrayContaining(['read-again']) })
  expect((await launch('after')).error).toBeUndefined()
  const said = new Map(recordsOf(at.stateDir).map(({ seq, body }) => [seq, body as { allow: string[] }]))
  const launched = (bodiesOf(at.stateDir, 'server.launched') as unknown as Launched[]).filter(({ server }) =>
    /^(read-again|n-\d+|after)$/.test(server),
  )
  const allowed = launched.map(({ entry }) => entry.tools.allow)
  expect(launched.map(({ under }) => said.get(under.seq)?.allow)).toEqual(allowed)
  expect(new Set(allowed.flat())).toEqual(new Set(['echo', 'fail']))
})

test('a reload that can’t record all that it takes away changes nothing, and takes it away once it can', async () => {
  const segment = join(
    at.stateDir,
    'journal',
    readdirSync(join(at.stateDir, 'journal')).find((name) => name.endsWith('.jsonl')) ?? '',
  )
  const lengthOf = (type: string): number =>
    readFileSync(segment, 'utf8')
      .split('\n')
      .findLast((line) => line.includes(`"type":"${type}"`))?.length ?? 0
  const limitFiles = (bytes: number | 'unlimited') =>
    execFileSync('prlimit', ['--pid', `${at.process.pid}`, `--fsize=${bytes}:`])
  const none = { dynamic: { enabled: false } }
  const launchTwo = async () => {
    for (const name of ['full-one', 'full-two']) expect((await launch(name)).error).toBeUndefined()
  }
  // What a reload writes that takes the first away, and not the second.
  await launchTwo()
  expect(await reload({}, none)).toMatchObject({ left_out: [{ server: 'full-one' }, { server: 'full-two' }] })
  const recorded = ['config.applied', 'dynamic.applied', 'server.removed']
  const room = recorded.reduce((sum, type) => sum + lengthOf(type), 40)
  await reload({ base: fixture('echo') })
  await launchTwo()
  limitFiles(statSync(segment).size + room)
  await expect(reload({}, none)).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
  limitFiles('unlimited')
  for (const name of ['full-one', 'full-two', 'base'])
    expect((await echo(name)).result).toMatchObject({ type: 'output' })
  expect(await reload({}, none)).toMatchObject({
    removed: expect.arrayContaining(['full-one', 'full-two', 'base']),
  })
  for (const name of ['full-one', 'full-two'])
    expect((await echo(name)).error?.data.code).toBe('ERR_SERVER_NOT_FOUND')
})

describe('code that a host names', () => {
  test('is no more than 1 GiB, in all its folders together', async () => {
    const [small, large] = [await folderOf('small', mebibyte), await folderOf('large', 1024 * mebibyte)]
    expect((await launch('too-large', large)).error).toMatchObject({
      message: expect.stringContaining('holds more than 1024 MiB'),
      data: { code: 'ERR_PACKAGE_UNSAFE' },
    })
    await truncate(join(large, 'data'), 1024 * mebibyte - 2000)
    expect((await launch('too-large', small, [large])).error).toMatchObject({
      message: expect.stringMatching(/large holds more than 102[23] MiB/),
    })
    // The operator's is what the operator says.
    expect(JSON.stringify(await host.ask('servers/list', {}))).not.toContain('"too-large"')
  })

  test('is read for one launch of a host at a time, and for none that nobody waits for', async () => {
    const large = await folderOf('read-once', 100 * mebibyte)
    const answers: string[] = []
    const asked = [launch('first', large), launch('second')]
    for (const [n, answer] of asked.entries())
      void answer.then(() => answers.push(['first', 'second'][n] ?? ''))
    await Promise.all(asked)
    expect(answers).toEqual(['first', 'second'])
    const gone = await open()
    await truncate(join(large, 'data'), 500 * mebibyte)
    void gone.ask('servers/launch', requestOf('gone', large)).catch(() => undefined)
    await gone.ask('sallyport/hello', {}) // it has begun by then
    gone[Symbol.dispose]()
    expect((await launch('next')).error).toBeUndefined()
    const listed = JSON.stringify(await host.ask('servers/list', {}))
    expect([listed.includes('"next"'), listed.includes('"gone"')]).toEqual([true, false])
    await truncate(join(large, 'data'), mebibyte)
    expect((await launch('gone')).error).toBeUndefined()
  })
})

test('the list of who launches a server gains its tools and loses them again', async () => {
  const tools = async (caller: RawCaller): Promise<readonly string[]> => {
    const { result } = await caller.ask('tools/list', { all: true })
    const { tools: listed } = result as unknown as { readonly tools: readonly { readonly name: string }[] }
    return listed.map(({ name }) => name)
  }
  const before = await tools(host)
  expect((await launch('listed')).error).toBeUndefined()
  expect((await host.ask('servers/start', { server: 'listed' })).error).toBeUndefined()
  expect(await tools(host)).toEqual([...before, 'listed_echo'])
  using again = await open() // another connection of the same host
  expect(await tools(again)).toEqual([...before, 'listed_echo'])
  expect((await host.ask('servers/remove', { server: 'listed' })).error).toBeUndefined()
  expect(await tools(host)).toEqual(before)
  expect((await launch('listed')).error).toBeUndefined()
  expect(await tools(host)).toEqual(before) // nothing of its former life
})
