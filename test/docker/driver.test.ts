// The docker driver against the real engine, init and kernel.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { SandboxProcess } from '../../src/sandbox/driver.ts'
import { labels } from '../../src/sandbox/docker/container.ts'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { openEngine } from '../../src/sandbox/docker/engine.ts'
import { newDaemonId } from '../../src/lib/ids.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import { cuttableEngine } from '../support/cut-engine.ts'
import { eventually } from '../support/eventually.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { textOf } from '../support/plan.ts'

const endpoint = findEndpoint(process.env)
const engine = await openEngine(endpoint, process.env)
const without = await engine.info({ ms: 5_000 }).then(
  () => null,
  (error: unknown) => String(error),
)
const socketPath = endpoint.kind === 'unix' ? endpoint.socketPath : ''
const inContainer = { driver: 'docker' }

/** Launches under a daemon of its own, whose containers can be asked for. */
const oneLaunch = async (
  fixture: string,
  args: readonly string[] = [],
  { environment = process.env, ...more }: Record<string, unknown> & { environment?: NodeJS.ProcessEnv } = {},
) => {
  const daemon = newDaemonId()
  const host = await launchHost({ environment, daemon })
  const containers = () => engine.list([`${labels.daemon}=${daemon}`])
  const start = async (): Promise<SandboxProcess> =>
    launchProbe(await settingsFor(fixture, args, { ...inContainer, ...more }), host)
  return { containers, start, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() }
}

describe.skipIf(without !== null)('a server in a container', () => {
  test('gets exactly the bytes that are written to it, and what it writes arrives whole, however slow its reader', async () => {
    await using at = await oneLaunch('confined-echo.mjs')
    await using server = await at.start()
    const sent = randomBytes(6 << 20)
    inputOf(server).end(sent)
    const chunks: Buffer[] = []
    for await (const chunk of server.stdout) {
      chunks.push(chunk as Buffer)
      if (chunks.length % 40 === 0) await delay(1)
    }
    expect(Buffer.concat(chunks).equals(sent)).toBe(true)
    expect(await server.ended).toEqual({ code: 0, signal: null, reason: 'exited' })
    expect(await at.containers()).toEqual([])
  })

  test('waits with what nobody takes, and its other stream does not', async () => {
    await using at = await oneLaunch('floods-then-answers.mjs')
    await using server = await at.start()
    const first = await server.stdout[Symbol.asyncIterator]().next()
    expect(String(first.value)).toBe('answered\n')
    inputOf(server).end()
    expect((await textOf(server.stderr)).length).toBe(16 << 20)
  })

  test('is held by the engine as its spec says, and the engine is told nothing of what it runs', async () => {
    await using at = await oneLaunch('confined-echo.mjs', ['argument-of-its-own'], {
      env: { OWN: 'value-of-its-own' },
    })
    await using server = await at.start()
    const [container] = await at.containers()
    const facts = await engine.inspect(container?.Id ?? '')
    expect(facts?.HostConfig).toMatchObject({
      AutoRemove: true,
      CapAdd: [],
      CapDrop: ['ALL'],
      IpcMode: 'none',
      LogConfig: { Type: 'none' },
      Memory: server.spec.limits.memoryBytes,
      MemorySwap: server.spec.limits.memoryBytes,
      NetworkMode: 'none',
      PidMode: '',
      Privileged: false,
      ReadonlyRootfs: true,
    })
    expect(facts?.HostConfig.PidsLimit).toBeGreaterThan(0)
    expect(facts?.HostConfig.SecurityOpt).toEqual(['no-new-privileges', expect.stringContaining('seccomp=')])
    expect(facts?.Config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    expect(facts?.Mounts.filter(({ RW }) => RW).map(({ Source }) => Source)).toEqual(['/proc/sys/user'])
    const told = JSON.stringify(facts)
    for (const word of ['argument-of-its-own', 'value-of-its-own', 'docker.sock'])
      expect(told).not.toContain(word)
    inputOf(server).end()
    await server.ended
  })

  test('gets SIGTERM itself, and its own status is what it ended with', async () => {
    await using at = await oneLaunch('confined-echo.mjs')
    await using server = await at.start()
    inputOf(server).write('up')
    await eventually(() => server.stdout.read() !== null)
    server.terminate()
    expect(await server.ended).toEqual({ code: 5, signal: null, reason: 'exited' })
    expect(await textOf(server.stderr)).toBe('terminated\n')
    expect(await at.containers()).toEqual([])
  })

  test('that ignores all that is polite is killed with its container, and nothing is left', async () => {
    await using at = await oneLaunch('ignore-sigterm.mjs')
    await using server = await at.start()
    server.kill()
    expect(await server.ended).toMatchObject({ reason: 'killed' })
    expect(await at.containers()).toEqual([])
    expect(existsSync(`/proc/${server.initPid}`)).toBe(false)
  })

  test('that takes more memory than it has ends, and the reason says memory', async () => {
    await using at = await oneLaunch('probe-exhaust.mjs', ['memory'], {
      limits: { memoryBytes: 100_000_000 },
    })
    await using server = await at.start()
    expect(await server.ended).toMatchObject({ reason: 'oom' })
    expect(await at.containers()).toEqual([])
  })

  test('whose program is not there does not start, and nothing is left', async () => {
    await using at = await oneLaunch('confined-echo.mjs', [], { cwd: '/home/user/none' })
    await expect(at.start()).rejects.toMatchObject({ code: 'ERR_SANDBOX_EXEC' })
    expect(await at.containers()).toEqual([])
  })
})

describe.skipIf(without !== null)('an engine', () => {
  test('that is not there refuses the launch by its address', async () => {
    await using at = await oneLaunch('echo.mjs', [], {
      environment: { DOCKER_HOST: 'unix:///nonexistent/engine.sock' },
    })
    await expect(at.start()).rejects.toMatchObject({ code: 'ERR_ENGINE_UNREACHABLE' })
  })

  test('that is elsewhere is refused with the reason and what to do', async () => {
    await using at = await oneLaunch('echo.mjs', [], {
      environment: { DOCKER_HOST: 'ssh://elsewhere.invalid' },
    })
    await expect(at.start()).rejects.toMatchObject({
      code: 'ERR_SANDBOX_UNENFORCEABLE',
      message: expect.stringContaining('run sallyport on that machine'),
    })
  })

  test('that goes away ends the server that it held, and what it still had is removed when it is back', async () => {
    await using way = await cuttableEngine(socketPath)
    const at = await oneLaunch('ignore-sigterm.mjs', [], { environment: { DOCKER_HOST: way.address } })
    await using server = await at.start()
    way.cut()
    expect(await server.ended).toMatchObject({ reason: 'sandbox-lost' })
    expect(existsSync(`/proc/${server.initPid}`)).toBe(false)
    await at[Symbol.asyncDispose]()
    await eventually(async () => (await at.containers()).length === 0)
  })

  test('that hangs does not keep a server from being stopped', async () => {
    await using way = await cuttableEngine(socketPath)
    await using at = await oneLaunch('ignore-sigterm.mjs', [], { environment: { DOCKER_HOST: way.address } })
    await using server = await at.start()
    way.hang()
    const from = performance.now()
    server.kill()
    expect(await server.ended).toMatchObject({ reason: 'killed' })
    expect(performance.now() - from).toBeLessThan(5_000)
    expect(existsSync(`/proc/${server.initPid}`)).toBe(false)
    way.cut()
    await eventually(async () => (await at.containers()).length === 0)
  })
})
