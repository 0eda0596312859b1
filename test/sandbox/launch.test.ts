// The whole sequence: what each step refuses, what a launch reports of itself, and that nothing is left of it.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newInstanceId } from '../../src/lib/ids.ts'
import type { CgroupSupport } from '../../src/sandbox/cgroup/level.ts'
import type { LaunchHost } from '../../src/sandbox/host.ts'
import { launch, launchSteps, noSupply } from '../../src/sandbox/launch.ts'
import type { ServerSettings, Settings } from '../../src/schema/settings.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { textOf } from '../support/plan.ts'
import { processesOf } from '../support/processes.ts'

const isRoot = process.getuid?.() === 0
const signal = AbortSignal.timeout(600_000)

let host: LaunchHost
let settings: Settings

beforeAll(async () => {
  host = await launchHost()
  settings = await settingsFor('probe-exec.mjs', ['/bin/cat'])
})
afterAll(() => host[Symbol.asyncDispose]())

/** The control groups of instances that are there now. */
const groups = (): string[] =>
  host.cgroups.directories
    .filter((directory) => existsSync(directory))
    .flatMap((directory) => readdirSync(directory).filter((name) => name.startsWith('i-')))

const launchWith = (change: Partial<ServerSettings>, from: LaunchHost = host, waiting = { signal }) => {
  const server = settings.servers.get('probe')
  const profile = settings.profiles.get('node')
  if (server === undefined || profile === undefined) throw new Error('no server or profile')
  return launch(
    { server: { ...server, ...change }, profile, settings, instance: newInstanceId(), supply: noSupply },
    from,
    waiting,
  )
}

test('the steps are those of the design, in their order', () => {
  expect(launchSteps).toEqual([
    'fingerprint',
    'resolve',
    'scrub',
    'plan',
    'confine',
    'limit',
    'gate',
    'handshake',
  ])
})

describe('a launch', () => {
  test('gives a server that answers, and says what holds each limit', async () => {
    await using server = await launchProbe(settings, host)
    inputOf(server).end('hello')
    expect(await textOf(server.stdout)).toBe('hello')
    expect(await server.ended).toEqual({ code: 0, signal: null, reason: 'exited' })
    const { bases } = host.limits.cgroups
    expect(server.enforcedBy).toEqual({
      memory: bases.memory === null ? 'watchdog' : `cgroup-v${bases.memory.version}`,
      pids: bases.pids === null ? 'rlimit' : `cgroup-v${bases.pids.version}`,
      cpu: bases.cpu === null ? 'none' : `cgroup-v${bases.cpu.version}`,
      files: 'rlimit',
      tmp: 'tmpfs',
    })
  })

  test('is a member of its control groups while it lives, and they go with it', async () => {
    const server = await launchProbe(settings, host)
    if (host.cgroups.directories.length > 0) expect(groups()).toContain(server.spec.instance)
    await server[Symbol.asyncDispose]()
    expect(groups()).not.toContain(server.spec.instance)
  })

  test('can be made many times at once, each with a uid of its own where the daemon is root', async () => {
    const servers = await Promise.all(Array.from({ length: 6 }, () => launchProbe(settings, host)))
    const uids = servers.map(({ spec }) => spec.hostUid)
    expect(uids).not.toContain(0)
    if (isRoot) expect(new Set(uids).size).toBe(6)
    for (const server of servers) server.stdin.end()
    for (const { exit } of await Promise.all(servers.map(async ({ ended }) => ({ exit: await ended }))))
      expect(exit).toEqual({ code: 0, signal: null, reason: 'exited' })
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))
    if (isRoot) for (const uid of uids) expect(processesOf(uid)).toEqual([])
    expect(groups()).toEqual([])
  })

  test.runIf(isRoot)('as an account has the group of that, whatever group has its number', async () => {
    // Of Debian's `games`, whose uid is the gid of `tty`
    const [uid, gid] = ['-u', '-g'].map((which) => Number(execFileSync('id', [which, 'games'])))
    await using server = await launchWith({ runAs: uid ?? 0 })
    const status = readFileSync(`/proc/${server.initPid}/status`, 'utf8')
    expect(status).toMatch(new RegExp(`^Gid:(\\t${gid}){4}$`, 'm'))
    expect(gid).not.toBe(uid)
  })
})

describe('a launch is refused', () => {
  const nothing: CgroupSupport = {
    level: 'none',
    bases: { memory: null, pids: null, cpu: null, kill: null },
    cause: 'a test took the control groups away',
    mend: 'give them back',
  }

  test('by the name of the control that this machine lacks', async () => {
    const trial = { works: false, message: 'Operation not permitted', stderr: '' } as const
    const broken = { ...host, fingerprint: { ...host.fingerprint, trial } }
    await expect(launchWith({}, broken)).rejects.toMatchObject({ code: 'ERR_SANDBOX_UNENFORCEABLE' })
  })

  test('by the name of the feature that this version does not enforce', async () => {
    await expect(launchWith({ unenforceable: ['egress'] })).rejects.toMatchObject({
      code: 'ERR_SANDBOX_UNENFORCEABLE',
      message: expect.stringContaining('egress') as unknown,
    })
  })

  test('by the name of the limit that is required and cannot be held', async () => {
    const poor = { ...host, limits: { ...host.limits, cgroups: nothing } }
    const server = settings.servers.get('probe')
    const profile = settings.profiles.get('node')
    if (server === undefined || profile === undefined) throw new Error('no server or profile')
    const enforcement = { ...profile.limits.enforcement, memory: 'required' } as const
    const strict = { ...profile, limits: { ...profile.limits, enforcement } }
    const request = { server, profile: strict, settings, instance: newInstanceId(), supply: noSupply }
    await expect(launch(request, poor, { signal })).rejects.toMatchObject({
      code: 'ERR_SANDBOX_UNENFORCEABLE',
      details: { control: 'memory' },
    })
  })

  test('with a way out that its profile does not have, without one that it has, and where the host can’t hold it', async () => {
    const server = settings.servers.get('probe')
    const profile = settings.profiles.get('node')
    if (server === undefined || profile === undefined) throw new Error('no server or profile')
    const open = { ...profile, network: { mode: 'allowlist', allow: [] } } as const
    const openDoor = (): Promise<string> => Promise.reject(new Error('nothing may be opened'))
    const request = { server, settings, instance: newInstanceId() }
    const trial = { works: false, message: '', stderr: 'sallyport-init: egress: x: y' } as const
    const poor = { ...host, fingerprint: { ...host.fingerprint, egressTrial: trial } }
    const refused = (control: string) => ({ code: 'ERR_SANDBOX_UNENFORCEABLE', details: { control } })
    await expect(
      launch({ ...request, profile, supply: { ...noSupply, openDoor } }, host, { signal }),
    ).rejects.toMatchObject(refused('network.mode'))
    await expect(
      launch({ ...request, profile: open, supply: noSupply }, host, { signal }),
    ).rejects.toMatchObject(refused('network.mode'))
    await expect(
      launch({ ...request, profile: open, supply: { ...noSupply, openDoor } }, poor, { signal }),
    ).rejects.toMatchObject(refused('egress'))
  })

  test('and not by a trial of a sandbox that was late as the daemon started: it is made anew', async () => {
    const trial = { works: false, message: 'late', stderr: '', isUnsettled: true } as const
    const busy = { ...host, fingerprint: { ...host.fingerprint, trial, egressTrial: null } }
    await using server = await launchWith({}, busy)
    expect(server.initPid).toBeGreaterThan(1)
  })

  test.each(['trial', 'egressTrial'] as const)(
    'nor one with a way out, by a late %s: what it left untried is tried as well',
    async (which) => {
      const server = settings.servers.get('probe')
      const profile = settings.profiles.get('node')
      if (server === undefined || profile === undefined) throw new Error('no server or profile')
      const trial = { works: false, message: 'late', stderr: '', isUnsettled: true } as const
      const busy = { ...host, fingerprint: { ...host.fingerprint, egressTrial: null, [which]: trial } }
      const openDoor = (): Promise<string> => Promise.reject(new Error('it came to the door'))
      const request = {
        server,
        profile: { ...profile, network: { mode: 'allowlist', allow: [] } },
        settings,
        instance: newInstanceId(),
        supply: { ...noSupply, openDoor },
      } as const
      await expect(launch(request, busy, { signal })).rejects.toThrow('it came to the door')
    },
  )

  test.runIf(isRoot)('as root, whoever asks for it', async () => {
    await expect(launchWith({ runAs: 0 })).rejects.toMatchObject({ code: 'ERR_SANDBOX_UNENFORCEABLE' })
  })

  test('in root’s group', async () => {
    // As an ordinary user’s daemon whose group is 0, which the user cannot change.
    const facts = { ...host.facts, uid: process.getuid?.() || 61_234, gid: 0 }
    await expect(launchWith({}, { ...host, facts })).rejects.toMatchObject({
      code: 'ERR_SANDBOX_UNENFORCEABLE',
      details: { control: 'run_as', gid: 0 },
    })
  })

  test('and leaves nothing when its caller gives up on the way', async () => {
    for (const ms of [0, 5, 10, 20, 40]) {
      const waiting = { signal: AbortSignal.timeout(ms) }
      const outcome = await launchWith({}, host, waiting).catch((error: unknown) => error)
      if (outcome instanceof Error) expect(outcome).toMatchObject({ name: 'TimeoutError' })
      else await (outcome as AsyncDisposable)[Symbol.asyncDispose]()
      expect(groups()).toEqual([])
    }
  })
})
