// Servers in gVisor: the same launch with another kernel in it, and what that one can't give refused by name.
import { existsSync } from 'node:fs'
import { release } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EngineInfo } from '../../src/sandbox/docker/answers.ts'
import { isGvisor, judgeGvisor, requireSameSources } from '../../src/sandbox/docker/gvisor.ts'
import type { LaunchHost } from '../../src/sandbox/host.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import { gvisor, hasGvisor, ownEngine, type OwnEngine } from '../support/own-engine.ts'
import { expectNoContainers } from '../support/engine.ts'
import { expectEveryByte } from '../support/every-byte.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { textOf } from '../support/plan.ts'
import { expectRefusal } from '../support/refusal.ts'

const inGvisor = { driver: 'docker', runtime: 'runsc' }

describe.runIf(hasGvisor)('a server in gVisor', () => {
  let engine: OwnEngine
  let host: LaunchHost
  beforeAll(async () => {
    engine = await ownEngine({ runtimes: gvisor })
    host = await launchHost({ environment: engine.environment })
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    await engine[Symbol.asyncDispose]()
  })

  test('has another kernel than this, no capability, a filter, and an environment of its own', async () => {
    await using server = await launchProbe(await settingsFor('says-status.mjs', [], inGvisor), host)
    inputOf(server).end()
    const [out, exit] = [await textOf(server.stdout), await server.ended]
    const seen = JSON.parse(out) as Readonly<Record<string, unknown>>
    expect(seen).toMatchObject({ CapInh: none, CapPrm: none, CapEff: none, CapBnd: none, Seccomp: '2' })
    expect(seen['Uid']).toBe('1000\t1000\t1000\t1000')
    expect(seen['kernel']).not.toBe(release())
    expect(exit).toEqual({ code: 0, signal: null, reason: 'exited' })
    await expectNoContainers(engine.engine)
  })

  test('has room for gVisor’s own threads, however few processes the server may have', async () => {
    const few = { ...inGvisor, limits: { pids: 16 } }
    for (let launches = 0; launches < 2; launches++) {
      await using server = await launchProbe(await settingsFor('says-status.mjs', [], few), host)
      inputOf(server).end()
      expect(await server.ended).toEqual({ code: 0, signal: null, reason: 'exited' })
    }
  })

  test('gets and gives every byte, and ends of SIGTERM with its own status', async () => {
    await using server = await launchProbe(await settingsFor('confined-echo.mjs', [], inGvisor), host)
    await expectEveryByte(server)
  })

  test('is killed with all that it started, and nothing is left', async () => {
    await using server = await launchProbe(await settingsFor('ignore-sigterm.mjs', [], inGvisor), host)
    server.kill()
    expect(await server.ended).toMatchObject({ reason: 'killed' })
    await expectNoContainers(engine.engine)
    expect(existsSync(`/proc/${server.initPid}`)).toBe(false)
  })

  test('is refused where a source is not the file any more that was judged', async () => {
    await using server = await launchProbe(await settingsFor('confined-echo.mjs', [], inGvisor), host)
    const { spec } = server
    await requireSameSources(spec)
    const mounts = spec.mounts.map((mount) => ({ ...mount, ino: mount.ino + 1n }))
    await expectRefusal(
      () => requireSameSources({ ...spec, mounts }),
      'ERR_SANDBOX_SETUP',
      'not the directory any more',
    )
  })
})

const none = '0000000000000000'
const having = (runsc: object): EngineInfo =>
  ({ Runtimes: { runc: { path: 'runc' }, runsc }, DefaultRuntime: 'runc' }) as unknown as EngineInfo

test('gVisor is known by the name of a runtime, or by its program', () => {
  const info = having({ path: '/usr/bin/runsc' })
  expect(isGvisor('runsc', info)).toBe(true)
  expect(isGvisor(null, info)).toBe(false)
  expect(isGvisor(null, { ...info, DefaultRuntime: 'runsc' })).toBe(true)
  const renamed = { ...info, Runtimes: { safe: { path: '/opt/runsc' } } }
  expect(isGvisor('safe', renamed)).toBe(true)
})

test('a runsc that lets nobody reach the supervisor is refused with the argument that it lacks', () => {
  const judge =
    (runsc: object, network: 'none' | 'allowlist' = 'none') =>
    (): void =>
      judgeGvisor('runsc', having(runsc), network)
  const open = { runtimeArgs: ['--platform=kvm', '--host-uds=open'] }
  expect(judge({ runtimeArgs: ['--platform=kvm'] })).toThrow('"--host-uds=open"')
  expect(judge({ path: '/usr/bin/runsc' })).toThrow('"--host-uds=open"')
  expect(judge({ runtimeType: 'io.containerd.runsc.v1' })).not.toThrow()
  expect(judge(open)).not.toThrow()
  expect(judge(open, 'allowlist')).toThrow(/allowlist is made of; use the engine’s usual runtime/)
})
