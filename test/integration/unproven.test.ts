// Where no descriptor is left to look with, nothing proves that a sandbox is gone: whoever stops it is told so, and nobody waits for ever.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture, place, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { descendantsOf } from '../support/leaks.ts'
import { RawCaller } from '../support/raw-caller.ts'

const config = configOf({ echo: fixture('echo') })
const hello = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'host', version: '1' },
}

/** A host whose session has a process. */
async function attached(at: TestDaemon): Promise<RawCaller> {
  const host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await host.ask('session/attach', { server: 'echo' })
  expect(await host.ask('initialize', hello)).toMatchObject({ result: { serverInfo: { name: 'echo' } } })
  return host
}

/** Gives the daemon no further descriptor; what it returns gives back what it had. */
function exhaust({
  process: { pid },
}: {
  readonly process: { readonly pid?: number | undefined }
}): () => void {
  const limit = (soft: string): unknown => execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`])
  const usual = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? ''
  limit('3')
  return () => void limit(usual)
}

test('a stop of a session fails by name, the session is shown until there is proof, and the server is used on', async () => {
  await using at = await daemon(config)
  using _host = await attached(at)
  const instances = async () => (await at.client.call('servers/get', { server: 'echo' })).instances
  const [{ id } = { id: '' }] = await instances()
  const giveBack = exhaust(at)
  try {
    await expect(at.client.call('servers/stop', { server: 'echo' })).rejects.toMatchObject({
      code: 'ERR_SHORTAGE',
      message: expect.stringMatching(/is still not gone .* \(EMFILE\); stop what uses up descriptors/),
    })
    expect(await instances()).toMatchObject([{ id, purpose: 'session', state: 'failed' }])
  } finally {
    giveBack()
  }
  await eventually(async () => (await instances()).length === 0)
  using _another = await attached(at)
})

test('how a process ended is told though the proof of it came late', async () => {
  await using at = await daemon(config)
  const open = () => RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  using host = await open()
  const { result: { session } = {} } = await host.ask('session/attach', { server: 'echo' })
  expect(await host.ask('initialize', hello)).toMatchObject({ result: { serverInfo: { name: 'echo' } } })
  const giveBack = exhaust(at)
  try {
    await expect(at.client.call('servers/stop', { server: 'echo' })).rejects.toMatchObject({
      message: expect.stringContaining('is still not gone'),
    })
  } finally {
    giveBack()
  }
  using later = await open()
  const told = await eventually(
    async () => (await later.ask('session/result', { session })).result ?? undefined,
  )
  expect(told).toMatchObject({ status: 0 }) // 1 would be that nobody knows
})

test('a control instance that is not proven to be gone is not stopped by saying so once more, until it is', async () => {
  await using at = await daemon(config)
  await at.client.call('servers/start', { server: 'echo' })
  const stop = () => at.client.call('servers/stop', { server: 'echo' })
  const giveBack = exhaust(at)
  try {
    for (const _ of ['once', 'twice'])
      await expect(stop()).rejects.toMatchObject({ message: expect.stringContaining('is still not gone') })
  } finally {
    giveBack()
  }
  await eventually(
    async () =>
      (await at.client.call('servers/get', { server: 'echo' })).instances[0]?.state === 'stopped' ||
      undefined,
  )
  expect(await stop()).toEqual({ stopped: [] })
  await at.client.call('servers/start', { server: 'echo' })
})

test('a session whose probe was not proven to be gone ends, and whoever ends it is told', async () => {
  const timeouts = { initialize_ms: 4000 }
  const server = fixture('discover', { args: ['/app/discover.mjs', 'silent'], timeouts })
  await using at = await daemon(configOf({ server }))
  using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await host.ask('session/attach', { server: 'server' })
  const instances = async () => (await at.client.call('servers/get', { server: 'server' })).instances
  const asked = host.ask('server/discover', {})
  await eventually(async () => typeof (await instances())[0]?.pid === 'number' || undefined)
  const giveBack = exhaust(at)
  try {
    expect(await asked).toMatchObject({ error: { code: -32601 } })
    await eventually(async () => (await instances())[0]?.state === 'failed' || undefined)
    await expect(at.client.call('servers/stop', { server: 'server' })).rejects.toMatchObject({
      message: expect.stringContaining('is still not gone'),
    })
    expect(await instances()).toMatchObject([{ state: 'failed' }])
  } finally {
    giveBack()
  }
  await eventually(async () => (await instances()).length === 0)
})

test('a daemon that is told to end does, says so by its status, and its guard takes down what may be left', async () => {
  await using at = await daemon(config)
  using _host = await attached(at)
  const parts = descendantsOf(at.process.pid ?? 0).map(({ pid }) => pid)
  expect(parts.length).toBeGreaterThan(3)
  const ended = once(at.process, 'exit')
  exhaust(at)
  at.process.kill('SIGTERM')
  expect(await ended).toEqual([1, null])
  await eventually(() => parts.every(isGone))
  expect((await at.run(['audit', 'verify', '--state', at.stateDir])).status).toBe(0)
})

test('a run that is told to end does, and its guard takes down what may be left', async () => {
  await using at = await place()
  const servers = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
  const command = ['--mount', `${servers}:/app`, '--', process.execPath, '/app/echo.mjs']
  const child = at.start(['run', ...command], { SALLYPORT_CONFIG: '', HOME: at.folder })
  child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: hello })}\n`)
  await once(child.stdout ?? child, 'data')
  const parts = descendantsOf(child.pid ?? 0).map(({ pid }) => pid)
  expect(parts.length).toBeGreaterThan(3)
  const ended = once(child, 'exit')
  exhaust({ process: child })
  child.kill('SIGTERM')
  expect(await ended).toEqual([1, null])
  await eventually(() => parts.every(isGone))
})

const isGone = (pid: number): boolean => {
  try {
    return /^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return true
  }
}
