// An engine that hangs, dies or comes back while servers run: each ends in its right state, and nothing of any is left.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LaunchHost } from '../../src/sandbox/host.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import { configOf, fixture, place, serve, type TestDaemon } from '../support/daemon.ts'
import { handled } from '../support/handled.ts'
import { canStartEngine, ownEngine, type OwnEngine } from '../support/own-engine.ts'
import { eventually } from '../support/eventually.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { recordsAbout } from '../support/reaching-out.ts'
import { sharedDaemon } from '../support/shared-daemon.ts'

const settings = await settingsFor('confined-echo.mjs', [], { driver: 'docker' })

const restart = { schedule_s: [0.1], jitter: 0, steady_s: 60, start_attempts: 2 }
const config = configOf(
  {
    slow: fixture('slow'),
    hung: fixture('echo', { restart, timeouts: { initialize_ms: 3000 } }),
    awaited: fixture('echo', { restart }),
  },
  { driver: 'docker' },
)

describe.runIf(canStartEngine)('an engine', () => {
  let at: OwnEngine
  let host: LaunchHost
  beforeAll(async () => {
    at = await ownEngine()
    host = await launchHost({ environment: at.environment })
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    await at[Symbol.asyncDispose]()
  })
  const daemon = sharedDaemon(config, () => at.environment)
  const instanceOf = async ({ client }: TestDaemon, server: string) =>
    (await client.call('servers/get', { server })).instances[0]
  const answers = async ({ client }: TestDaemon, server: string) =>
    (await client.call('tools/call', { server, tool: 'echo', arguments: {} })).type === 'output'

  test('that hangs keeps no server alive, and what it could not remove is gone once it answers', async () => {
    await using server = await launchProbe(settings, host)
    at.dockerd.kill('SIGSTOP')
    try {
      server.kill()
      expect(await server.ended).toMatchObject({ reason: 'killed' })
      expect(() => process.kill(server.initPid, 0)).toThrow('ESRCH')
    } finally {
      at.dockerd.kill('SIGCONT')
    }
    await eventually(async () => (await at.engine.list([])).length === 0)
  })

  test('that hangs holds up the end of a daemon for seconds and no longer', async () => {
    const state = await launchHost({ environment: at.environment })
    const server = await launchProbe(settings, state)
    at.dockerd.kill('SIGSTOP')
    const began = performance.now()
    try {
      server.kill()
      await server.ended
      await state[Symbol.asyncDispose]()
    } finally {
      at.dockerd.kill('SIGCONT')
    }
    expect(performance.now() - began).toBeLessThan(10_000)
    await eventually(async () => (await at.engine.list([])).length === 0)
  })

  test('that hangs while a server is launched fails the launch when its time is up, and leaves nothing', async () => {
    at.dockerd.kill('SIGSTOP')
    const late = AbortSignal.timeout(1_000)
    try {
      await expect(launchProbe(settings, host, null, late)).rejects.toMatchObject({ name: 'TimeoutError' })
    } finally {
      at.dockerd.kill('SIGCONT')
    }
    await using server = await launchProbe(settings, host)
    inputOf(server).end()
    expect(await server.ended).toMatchObject({ code: 0 })
    await eventually(async () => (await at.engine.list([])).length === 0)
  })

  test('that is killed takes its servers down, refuses the next launch by name, and is used again when it is back', async () => {
    await using server = await launchProbe(settings, host)
    at.dockerd.kill('SIGKILL')
    await eventually(() => server.ending() === 'engine-lost')
    expect(await server.ended).toMatchObject({ reason: 'engine-lost' })
    expect(() => process.kill(server.initPid, 0)).toThrow('ESRCH')
    await expect(launchProbe(settings, host)).rejects.toMatchObject({ code: 'ERR_ENGINE_UNREACHABLE' })
    await at.restart()
    await using again = await launchProbe(settings, host)
    inputOf(again).end()
    expect(await again.ended).toEqual({ code: 0, signal: null, reason: 'exited' })
    await eventually(async () => (await at.engine.list([])).length === 0)
  })

  test('that is killed amid a call fails the call, and the caller hears that it is the engine that went away', async () => {
    const where = await daemon.living()
    const { client } = where
    try {
      await client.call('servers/start', { server: 'slow' })
      const called = client.call('tools/call', { server: 'slow', tool: 'wait', arguments: { ms: 30_000 } })
      const refused = handled(
        expect(called).rejects.toMatchObject({
          code: 'ERR_SERVER_UNAVAILABLE',
          message:
            'mcp server slow is unavailable: the engine that its container ran on went away, and it was ended',
        }),
      )
      await eventually(() => recordsAbout(where, 'call.intent', 'slow').length > 0)
      at.dockerd.kill('SIGKILL')
      await refused
    } finally {
      await at.restart()
      await client.call('servers/stop', { server: 'slow' })
    }
    await eventually(async () => (await at.engine.list([])).length === 0)
  })

  test('held a server whose folder can’t be taken down: it is started again, and nobody else notices', async () => {
    const servers = { boxed: fixture('echo', { driver: 'docker' }), plain: fixture('echo') }
    await using where = await place(configOf(servers))
    const { process: child, client } = await serve(where, at.environment)
    const call = (server: string) => client.call('tools/call', { server, tool: 'echo', arguments: {} })
    for (const server of Object.keys(servers)) await call(server)
    const [boxed] = (await client.call('servers/get', { server: 'boxed' })).instances
    const busy = join(where.stateDir, 'docker', client.hello.daemon, boxed?.id ?? '', 'busy')
    mkdirSync(busy)
    execFileSync('mount', ['-t', 'tmpfs', 'none', busy])
    try {
      process.kill(boxed?.pid ?? 0, 'SIGKILL')
      await eventually(() => call('boxed'))
      await call('plain')
    } finally {
      execFileSync('umount', [busy])
      await client[Symbol.asyncDispose]()
      child.kill('SIGTERM')
      await eventually(() => child.exitCode !== null)
    }
    // What nobody caught would have it end with another status.
    expect(child.exitCode).toBe(0)
    expect(existsSync(busy)).toBe(false)
  })

  test('that hangs as a server is started again is told as that, and held against no server', async () => {
    const where = await daemon.living()
    const { client } = where
    try {
      await client.call('servers/start', { server: 'hung' })
      await client.call('servers/stop', { server: 'hung' })
      at.dockerd.kill('SIGSTOP')
      await expect(client.call('servers/start', { server: 'hung' })).rejects.toMatchObject({
        code: 'ERR_ENGINE_TIMEOUT',
        message: expect.stringContaining(
          'server hung was not launched within timeouts.initialize_ms (3000)',
        ) as string,
      })
      await eventually(async () => ((await instanceOf(where, 'hung'))?.restarts ?? 0) >= 4)
      expect((await instanceOf(where, 'hung'))?.state).not.toBe('failed')
      at.dockerd.kill('SIGCONT')
      await eventually(() => answers(where, 'hung'))
    } finally {
      at.dockerd.kill('SIGCONT')
      await client.call('servers/stop', { server: 'hung' })
    }
    await eventually(async () => (await at.engine.list([])).length === 0)
  })

  test('that stays away is waited for: a server that was to start meanwhile is not given up', async () => {
    const where = await daemon.living()
    const { client } = where
    at.dockerd.kill('SIGKILL')
    try {
      await expect(client.call('servers/start', { server: 'awaited' })).rejects.toThrow('does not answer')
      await eventually(async () => ((await instanceOf(where, 'awaited'))?.restarts ?? 0) >= 3)
      expect((await instanceOf(where, 'awaited'))?.state).not.toBe('failed')
      await at.restart()
      await eventually(() => answers(where, 'awaited'))
    } finally {
      await client.call('servers/stop', { server: 'awaited' })
    }
    await eventually(async () => (await at.engine.list([])).length === 0)
  })
})
