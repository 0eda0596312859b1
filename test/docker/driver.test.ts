// The docker driver against the real engine, init and kernel.
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { SandboxProcess } from '../../src/sandbox/driver.ts'
import { labels } from '../../src/sandbox/docker/container.ts'
import { EngineWatch } from '../../src/sandbox/docker/watch.ts'
import { newDaemonId } from '../../src/lib/ids.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import { cuttableEngine } from '../support/cut-engine.ts'
import { engineTest } from '../support/engine.ts'
import { handled } from '../support/handled.ts'
import type { TestEngine } from '../support/own-engine.ts'
import { otherMachine } from '../support/other-machine.ts'
import { eventually } from '../support/eventually.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { textOf } from '../support/plan.ts'

/** Launches under a daemon of its own, whose containers can be asked for. */
const oneLaunch = async (
  { engine, environment: usual }: TestEngine,
  fixture: string,
  args: readonly string[] = [],
  {
    environment = usual,
    ...more
  }: Record<string, unknown> & { environment?: Readonly<Record<string, string>> } = {},
) => {
  const daemon = newDaemonId()
  const host = await launchHost({ environment, daemon })
  const containers = () => engine.list([`${labels.daemon}=${daemon}`])
  const start = async (): Promise<SandboxProcess> =>
    launchProbe(await settingsFor(fixture, args, { driver: 'docker', ...more }), host)
  return { containers, start, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() }
}

const linkAt = (path: string): string => {
  try {
    return readlinkSync(path)
  } catch {
    return '' // it was closed meanwhile
  }
}

describe('a server in a container', () => {
  engineTest(
    'gets exactly the bytes that are written to it, and what it writes arrives whole, however slow its reader',
    async ({ engine }) => {
      await using at = await oneLaunch(engine, 'confined-echo.mjs')
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
    },
  )

  engineTest('waits with what nobody takes, and its other stream does not', async ({ engine }) => {
    await using at = await oneLaunch(engine, 'floods-then-answers.mjs')
    await using server = await at.start()
    const first = await server.stdout[Symbol.asyncIterator]().next()
    expect(String(first.value)).toBe('answered\n')
    inputOf(server).end()
    expect((await textOf(server.stderr)).length).toBe(16 << 20)
  })

  engineTest(
    'that is killed with what nobody took leaves no connection to the engine',
    async ({ engine }) => {
      const sockets = (): number =>
        readdirSync('/proc/self/fd').filter((fd) => linkAt(`/proc/self/fd/${fd}`).startsWith('socket:'))
          .length
      await using at = await oneLaunch(engine, 'floods-then-answers.mjs')
      const before = sockets()
      // One is the engine's, which tells of containers; a launcher that waits has five.
      const others = 6
      for (let round = 0; round <= others; round++) {
        await using server = await at.start()
        await server.stdout[Symbol.asyncIterator]().next()
        server.kill()
        await server.ended
      }
      await eventually(() => sockets() <= before + others)
    },
  )

  engineTest(
    'is held by the engine as its spec says, and the engine is told nothing of what it runs',
    async ({ engine }) => {
      await using at = await oneLaunch(engine, 'confined-echo.mjs', ['argument-of-its-own'], {
        env: { OWN: 'value-of-its-own' },
      })
      await using server = await at.start()
      const [container] = await at.containers()
      const facts = await engine.engine.inspect(container?.Id ?? '')
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
      expect(facts?.HostConfig.SecurityOpt).toEqual([
        'no-new-privileges',
        expect.stringContaining('seccomp='),
      ])
      expect(facts?.Config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/)
      expect(facts?.Mounts.filter(({ RW }) => RW).map(({ Source }) => Source)).toEqual(['/proc/sys/user'])
      const told = JSON.stringify(facts)
      for (const word of ['argument-of-its-own', 'value-of-its-own', 'docker.sock'])
        expect(told).not.toContain(word)
      inputOf(server).end()
      await server.ended
    },
  )

  engineTest('gets SIGTERM itself, and its own status is what it ended with', async ({ engine }) => {
    await using at = await oneLaunch(engine, 'confined-echo.mjs')
    await using server = await at.start()
    inputOf(server).write('up')
    await eventually(() => server.stdout.read() !== null)
    server.terminate()
    expect(await server.ended).toEqual({ code: 5, signal: null, reason: 'exited' })
    expect(await textOf(server.stderr)).toBe('terminated\n')
    expect(await at.containers()).toEqual([])
  })

  engineTest(
    'that ignores all that is polite is killed with its container, and nothing is left',
    async ({ engine }) => {
      await using at = await oneLaunch(engine, 'ignore-sigterm.mjs')
      await using server = await at.start()
      server.kill()
      expect(await server.ended).toMatchObject({ reason: 'killed' })
      expect(await at.containers()).toEqual([])
      expect(existsSync(`/proc/${server.initPid}`)).toBe(false)
    },
  )

  engineTest('that takes more memory than it has ends, and the reason says memory', async ({ engine }) => {
    await using at = await oneLaunch(engine, 'probe-exhaust.mjs', ['memory'], {
      limits: { memoryBytes: 100_000_000 },
    })
    await using server = await at.start()
    expect(await server.ended).toMatchObject({ reason: 'oom' })
    expect(await at.containers()).toEqual([])
  })

  engineTest('whose program is not there does not start, and nothing is left', async ({ engine }) => {
    await using at = await oneLaunch(engine, 'confined-echo.mjs', [], { cwd: '/home/user/none' })
    await expect(at.start()).rejects.toMatchObject({ code: 'ERR_SANDBOX_EXEC' })
    expect(await at.containers()).toEqual([])
  })
})

describe('an engine', () => {
  engineTest('that is not there refuses the launch by its address', async ({ engine }) => {
    await using at = await oneLaunch(engine, 'echo.mjs', [], {
      environment: { DOCKER_HOST: 'unix:///nonexistent/engine.sock' },
    })
    await expect(at.start()).rejects.toMatchObject({ code: 'ERR_ENGINE_UNREACHABLE' })
  })

  engineTest('that lacks a runtime refuses the server that names it, by its name', async ({ engine }) => {
    await using at = await oneLaunch(engine, 'echo.mjs', [], { runtime: 'kata' })
    await expect(at.start()).rejects.toMatchObject({
      code: 'ERR_SANDBOX_UNENFORCEABLE',
      message: expect.stringMatching(
        /^server probe names runtime kata, and the engine has (?=.*runc).+; add it to the engine’s daemon\.json, or correct the entry$/,
      ),
    })
    expect(await at.containers()).toEqual([])
  })

  engineTest(
    'that is elsewhere is refused with the reason and what to do, before anything is made there',
    async ({ engine }) => {
      await using way = await otherMachine(engine.environment.DOCKER_HOST.replace('unix://', ''))
      await using at = await oneLaunch(engine, 'echo.mjs', [], {
        environment: { DOCKER_HOST: way.address },
      })
      await expect(at.start()).rejects.toMatchObject({
        code: 'ERR_SANDBOX_UNENFORCEABLE',
        message: expect.stringContaining('run sallyport on that machine'),
      })
      expect(way.asked).toEqual(['GET /info HTTP/1.1'])
    },
  )

  engineTest(
    'that goes away ends the server that it held, and what it still had is removed when it is back',
    async ({ engine }) => {
      await using way = await cuttableEngine(engine.environment.DOCKER_HOST.replace('unix://', ''))
      const at = await oneLaunch(engine, 'ignore-sigterm.mjs', [], {
        environment: { DOCKER_HOST: way.address },
      })
      await using server = await at.start()
      way.cut()
      expect(await server.ended).toMatchObject({ reason: 'engine-lost' })
      expect(existsSync(`/proc/${server.initPid}`)).toBe(false)
      await at[Symbol.asyncDispose]()
      await eventually(async () => (await at.containers()).length === 0)
    },
  )

  engineTest(
    'that hangs before it has said a word fails a launch when its time is up, and holds up no end',
    async ({ engine }) => {
      await using way = await cuttableEngine(engine.environment.DOCKER_HOST.replace('unix://', ''))
      way.hang()
      const host = await launchHost({ environment: { DOCKER_HOST: way.address } })
      const settings = await settingsFor('echo.mjs', [], { driver: 'docker' })
      const launching = launchProbe(settings, host, null, AbortSignal.timeout(100))
      await expect(launching).rejects.toMatchObject({ name: 'TimeoutError' })
      const from = performance.now()
      await host[Symbol.asyncDispose]()
      expect(performance.now() - from).toBeLessThan(5_000)
    },
  )

  engineTest(
    'that hangs in the middle of a launch has nothing of it left once it answers, though nobody launches again',
    async ({ engine }) => {
      await using way = await cuttableEngine(engine.environment.DOCKER_HOST.replace('unix://', ''))
      const daemon = newDaemonId()
      await using host = await launchHost({ environment: { DOCKER_HOST: way.address }, daemon })
      const given = new AbortController()
      const settings = await settingsFor('confined-echo.mjs', [], { driver: 'docker' })
      const launching = handled(
        expect(launchProbe(settings, host, null, given.signal)).rejects.toThrow('given up'),
      )
      const left = () => engine.engine.list([`${labels.daemon}=${daemon}`, labels.instance])
      await eventually(async () => (await left()).length === 1)
      way.hang()
      given.abort(new Error('given up'))
      await launching
      way.resume()
      await eventually(async () => (await left()).length === 0)
    },
  )

  engineTest('is listened to by all who launch, though the first of them gives up', async ({ engine }) => {
    using watch = new EngineWatch(engine.engine, `${labels.daemon}=${newDaemonId()}`)
    const first = new AbortController()
    const asked = [first.signal, new AbortController().signal].map((signal) => watch.listen({ signal }))
    first.abort(new Error('given up'))
    expect(await Promise.allSettled(asked)).toMatchObject([
      { status: 'rejected', reason: { message: 'given up' } },
      { status: 'fulfilled' },
    ])
  })

  engineTest('that hangs does not keep a server from being stopped', async ({ engine }) => {
    await using way = await cuttableEngine(engine.environment.DOCKER_HOST.replace('unix://', ''))
    await using at = await oneLaunch(engine, 'ignore-sigterm.mjs', [], {
      environment: { DOCKER_HOST: way.address },
    })
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
