// `sallyport add` as a person types it: what the command line says is what the server gets.
import { chmod, mkdir, truncate, writeFile } from 'node:fs/promises'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configOf, daemon, endServe, fixture, place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { isRoot } from '../support/user.ts'

const fixtures = join(import.meta.dirname, '../fixtures/servers')

test.each([
  [
    'a script that is not there',
    `${fixtures}:/app`,
    '/app/missing.mjs',
    'ERR_ARGUMENT_REFUSED',
    'missing.mjs',
  ],
  ['what others write for a script', `${fixtures}:/app`, '/dev/stdin', 'ERR_ARGUMENT_REFUSED', 'no mount'],
  ['a folder for a script', `${fixtures}/..:/app`, '/app/servers', 'ERR_ARGUMENT_REFUSED', 'regular file'],
  [
    'code that is not there',
    '/nowhere:/app',
    '/app/echo.mjs',
    'ERR_PACKAGE_UNSAFE',
    '/nowhere does not exist',
  ],
])('what cannot be launched is not registered: %s', async (_what, code, script, error, words) => {
  await using at = await daemon(configOf({ base: fixture('echo') }))
  const said = 'add mine --command node --server-version 1 --justification tried --profile node'
  const { status, stderr } = await at.run([...said.split(' '), '--package', code, '--', script])
  expect({ status, stderr }).toEqual({ status: expect.any(Number), stderr: expect.stringContaining(error) })
  expect(status).not.toBe(0)
  expect(stderr).toContain(words)
  await expect(at.client.call('servers/get', { server: 'mine' })).rejects.toMatchObject({
    code: 'ERR_SERVER_NOT_FOUND',
  })
})

test('a server that was added has the mounts of its command line, and runs', async () => {
  await using at = await daemon(configOf({ base: fixture('echo') }))
  await chmod(at.folder, 0o711)
  for (const name of ['documents', 'pictures']) {
    await mkdir(join(at.folder, name))
    await writeFile(join(at.folder, name, 'file'), name)
  }
  const said = 'add mine --command node --server-version 1 --justification tried --profile node'
  const folders = ['documents:/documents', 'pictures:/pictures'].map((folder) => join(at.folder, folder))
  const { status, stderr } = await at.run([
    ...said.split(' '),
    '--package',
    `${fixtures}:/app`,
    '--mount',
    ...folders,
    '--',
    '/app/echo.mjs',
  ])
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining('mine 1 is registered') })
  expect((await at.client.call('servers/get', { server: 'mine' })).mounts).toMatchObject([
    { source: join(at.folder, 'documents'), target: '/documents', access: 'read' },
    { source: join(at.folder, 'pictures'), target: '/pictures', access: 'read' },
  ])
  expect((await at.run(['test', 'mine'])).status).toBe(0)
})

test('a server whose code takes long to read holds up no reload, and is none where its operator goes', async () => {
  await using at = await daemon(configOf({ base: fixture('echo') }))
  const source = join(at.folder, 'code')
  await mkdir(source)
  await writeFile(join(source, 'large'), '')
  await truncate(join(source, 'large'), 6 * 2 ** 30)
  const operator = await at.connect('operator')
  const said = {
    version: '1',
    justification: 'a test',
    tags: [],
    trust: 'untrusted',
    acceptance: 'first-use',
  }
  const entry = {
    ...said,
    command: 'node',
    profile: 'node',
    package: { source, target: '/app' },
    args: ['/app/large'],
  }
  let isAnswered = false
  const adding = operator
    .call('servers/add', { server: 'large', entry })
    .catch(() => null)
    .finally(() => (isAnswered = true))
  await eventually(() => readsOf(at.process.pid ?? 0).includes(join(source, 'large')))
  await at.client.call('daemon/reload', {})
  expect(isAnswered).toBe(false)
  await operator[Symbol.asyncDispose]()
  await adding
  await eventually(() => !readsOf(at.process.pid ?? 0).includes(join(source, 'large')))
  const { servers } = await at.client.call('servers/list', {})
  expect(servers.map(({ name }) => name)).toEqual(['base'])
})

/** Groups that every Linux has, and the user whose own each is */
const [daemons, bins] = [
  { group: 'daemon', uid: 1 },
  { group: 'bin', uid: 2 },
]
const runningAs = (uid: number) =>
  fixture('echo', { version: '1', justification: 'a test', tags: [], run_as: uid }) as Record<string, unknown>

describe.runIf(isRoot)('a server that would run as a host', () => {
  const apart = (group: string) => configOf({}, { host_group: group, require_separation: true })

  test('is not registered', async () => {
    await using at = await daemon(apart(daemons.group))
    const add = (server: string, uid: number) =>
      at.client.call('servers/add', { server, entry: runningAs(uid) })
    await expect(add('host', daemons.uid)).rejects.toMatchObject({
      code: 'ERR_SEPARATION',
      message: expect.stringContaining(`servers.host.run_as: got uid ${daemons.uid}`),
    })
    await add('other', bins.uid)
    const { servers } = await at.client.call('servers/list', {})
    expect(servers.map(({ name }) => name)).toEqual(['other'])
  })

  test('is left out by a later life whose hosts are others', async () => {
    await using at = await place(apart(bins.group))
    const first = await serve(at)
    await first.client.call('servers/add', { server: 'host', entry: runningAs(daemons.uid) })
    await endServe(first)
    await writeFile(at.config, JSON.stringify(apart(daemons.group)))
    const next = await serve(at)
    expect((await next.client.call('servers/list', {})).servers).toEqual([])
    expect((await next.client.call('sallyport/hello', {})).separation).toBe('full')
    await endServe(next)
  })
})

/** The files that a process has open. */
const readsOf = (pid: number): readonly string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)]
    } catch {
      return []
    }
  })
