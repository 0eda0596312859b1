// What hosts launch, by hosts that mean no good: names, code and haste, and what is left when it is gone.
import { chmod, cp, mkdir, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configOf, fixture, place, serve, type Place } from '../support/daemon.ts'
import { RawCaller } from '../support/raw-caller.ts'

const mebibyte = 1024 ** 2
const dynamic = { enabled: true, profile: 'node', tools: { allow: ['echo'] } }
const fixtures = join(import.meta.dirname, '../fixtures/servers')

let at: Place
let life: Awaited<ReturnType<typeof serve>>
let host: RawCaller
beforeEach(async () => {
  at = await place(configOf({ base: fixture('echo') }, { dynamic }))
  await chmod(at.folder, 0o711)
  life = await serve(at)
  host = await open()
})
afterEach(async () => {
  host[Symbol.dispose]()
  await life.client[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
})

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
  writeFile(at.config, JSON.stringify(configOf(servers, { dynamic, ...more }))).then(() =>
    life.client.call('daemon/reload', {}),
  )

/** A folder with a server, and with a file of that many bytes that takes no room on the disk. */
async function folderOf(name: string, bytes: number): Promise<string> {
  const folder = join(at.folder, name)
  await mkdir(folder)
  await cp(join(fixtures, 'echo.mjs'), join(folder, 'echo.mjs'))
  await writeFile(join(folder, 'data'), '')
  await truncate(join(folder, 'data'), bytes)
  return folder
}

test('nothing is known of what was launched, called and removed, whatever its names were', async () => {
  for (const name of ['one', 'two', 'one', 'three']) {
    expect((await launch(name)).error).toBeUndefined()
    expect((await echo(name)).result).toMatchObject({ type: 'output' })
    expect((await host.ask('servers/remove', { server: name })).result).toMatchObject({ removed: name })
  }
  await echo('base')
  const { trust } = await life.client.call('trust/list', {})
  expect([...new Set(trust.map(({ server }) => server))]).toEqual(['base'])
  const accepted = await life.client.call('audit/query', { type: 'surface.accepted', limit: 100 })
  const versions = accepted.records.map(({ body }) => body as { server: string; declarationVersion: number })
  expect(new Set(versions.map(({ server, declarationVersion: n }) => `${server}#${n}`)).size).toBe(5)
})

test('a name that the operator’s server had stays that one’s, with what was accepted under it', async () => {
  expect((await echo('base')).error).toBeUndefined()
  await reload({})
  expect((await launch('base')).error?.data.code).toBe('ERR_SERVER_EXISTS')
  await reload({ base: fixture('echo', { acceptance: 'manual' }) })
  expect((await echo('base')).result).toMatchObject({ type: 'output' })
})

test('what is quarantined takes its host’s room until it is released, gone or not', async () => {
  await reload({}, { max_dynamic_servers: 2 })
  for (const name of ['one', 'two']) {
    expect(
      (await launch(name, await folderOf(name, name.length + (name === 'one' ? 1 : 2)))).error,
    ).toBeUndefined()
    await life.client.call('servers/quarantine', { server: name })
    await host.ask('servers/remove', { server: name })
  }
  expect((await launch('three')).error).toMatchObject({
    message: expect.stringContaining('2 of them quarantined'),
    data: { code: 'ERR_DYNAMIC_REFUSED' },
  })
  await life.client.call('servers/release', { name: 'one' })
  expect((await launch('three')).error).toBeUndefined()
})

test('a name is one’s who was first to ask for it, host or operator', async () => {
  const stated = { version: '1', justification: 'a try', tags: [] }
  const entry = fixture('echo', stated) as Record<string, unknown>
  for (let n = 0; n < 8; n += 1) {
    const server = `same-${n}`
    const [launched, added] = await Promise.all([
      launch(server),
      life.client.call('servers/add', { server, entry }).catch((error: unknown) => error),
    ])
    const isLaunched = launched.error === undefined
    expect((await life.client.call('servers/get', { server })).scope).toBe(
      isLaunched ? 'dynamic' : 'registered',
    )
    const other: unknown = isLaunched ? added : launched.error.data
    expect(other).toMatchObject({ code: 'ERR_SERVER_EXISTS' })
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
  const churning = ['a', 'b'].map(churn)
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

describe('code that a host names', () => {
  test('is no more than 1 GiB, in all its folders together', async () => {
    const [small, large] = [await folderOf('small', mebibyte), await folderOf('large', 1024 * mebibyte)]
    expect((await launch('mine', large)).error).toMatchObject({
      message: expect.stringContaining('holds more than 1024 MiB'),
      data: { code: 'ERR_PACKAGE_UNSAFE' },
    })
    await truncate(join(large, 'data'), 1024 * mebibyte - 2000)
    expect((await launch('mine', small, [large])).error).toMatchObject({
      message: expect.stringMatching(/large holds more than 102[23] MiB/),
    })
    // The operator's is what the operator says.
    expect(JSON.stringify(await host.ask('servers/list', {}))).not.toContain('"mine"')
  })

  test('is read for one launch of a host at a time, and for none that nobody waits for', async () => {
    const large = await folderOf('large', 400 * mebibyte)
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
    expect((await launch('gone')).error).toBeUndefined()
  })
})
