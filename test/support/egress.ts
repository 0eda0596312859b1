// Launches a shell script behind a door of the test's, through every step, and tells what came through it.
import { fileURLToPath } from 'node:url'
import type { ProfileSettings, ServerSettings } from '../../src/schema/settings.ts'
import type { BubblewrapPlan } from '../../src/sandbox/bubblewrap/driver.ts'
import type { SandboxExit } from '../../src/sandbox/driver.ts'
import { etcFiles, withResolver } from '../../src/sandbox/mounts/etc.ts'
import { planNetwork } from '../../src/sandbox/network.ts'
import { askUser } from './as-user.ts'
import { forwardTo, openTestDoor, type TestDoor } from './sandbox-door.ts'
import { launchHost, launchProbe, settingsFor } from './launch.ts'
import { mountOf, ownUid, planOf, textOf } from './plan.ts'

/** What is tried; it crosses to a process of another user as JSON. */
export interface EgressRequest {
  /** Shell script of the server, run without any proxy variable */
  readonly script: string
  /** What is granted: `host:port` -> the port of 127.0.0.1 where a server of the test listens, or 0 where none does */
  readonly names: Readonly<Record<string, number>>
  /** Host path -> path in the sandbox, read-only */
  readonly mounts?: Readonly<Record<string, string>>
  /** Notices to wait for before the script may end, as patterns */
  readonly awaited?: readonly string[]
  /** Leaves the proxy variables where the supervisor put them */
  readonly keepsProxy?: boolean
  /** The network is the empty one instead */
  readonly isEmpty?: boolean
  /** In a container of this engine, named as a daemon's environment names it */
  readonly engine?: Readonly<Record<string, string>>
}

export interface EgressOutcome {
  readonly stdout: string
  readonly stderr: string
  readonly exit: SandboxExit
  /** First lines of what came to the door */
  readonly lines: readonly string[]
  readonly notices: readonly string[]
}

const withoutProxy = 'unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy NO_PROXY NODE_USE_ENV_PROXY\n'

/** Runs it under a daemon of that user. */
export const tryInside = async (daemon: 'root' | 'user', request: EgressRequest): Promise<EgressOutcome> =>
  process.getuid?.() === 0 && daemon === 'user'
    ? ((await askUser('egress', request)) as EgressOutcome)
    : runInside(request)

/** Runs it under a daemon of our own user. */
export const runInside = async (request: EgressRequest): Promise<EgressOutcome> => {
  const { script, names, mounts = {}, awaited = [], keepsProxy = false, isEmpty = false, engine } = request
  const listening = Object.entries(names).filter(([, port]) => port !== 0)
  await using door = await openTestDoor(forwardTo(Object.fromEntries(listening)))
  const settings = await settingsFor(
    'probe-exec.mjs',
    ['/bin/sh', '-c', `${keepsProxy ? '' : withoutProxy}${script}\nread wait || true`],
    {
      mounts: Object.entries(mounts).map(([source, target]) => ({
        source,
        target,
        access: 'read',
        reason: 'a test',
      })),
      ...(engine === undefined ? {} : { driver: 'docker' }),
    },
  )
  const network = { mode: isEmpty ? 'none' : 'allowlist', allow: [] } as const
  const profiles = [...settings.profiles].map(([name, profile]): [string, ProfileSettings] => [
    name,
    { ...profile, network },
  ])
  const servers = [...settings.servers].map(([name, server]): [string, ServerSettings] => [
    name,
    { ...server, egress: Object.keys(names).map(grantOf) },
  ])
  await using host = await launchHost({ environment: engine ?? {} })
  await using server = await launchProbe(
    { ...settings, profiles: new Map(profiles), servers: new Map(servers) },
    host,
    isEmpty ? null : door.openDoor,
  )
  const [stdout, stderr] = [textOf(server.stdout), textOf(server.stderr)]
  // A notice may come after the refusal that it tells of; the server waits on stdin until all are there.
  for (const pattern of awaited) await door.noticed(new RegExp(pattern))
  server.stdin.end()
  return {
    stdout: await stdout,
    stderr: await stderr,
    exit: await server.ended,
    lines: [...door.lines],
    notices: [...door.notices],
  }
}

/** A grant as a config has it, from `host:port`. */
export const grantOf = (name: string): ServerSettings['egress'][number] => {
  const [host = '', port = ''] = name.split(':')
  return { host, port: Number(port), address: null, private: true, tls: false, reason: 'a test' }
}

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

/** A plan that runs the fixture under Node behind the door, for the driver alone: what a broken arm takes things away from. */
export const egressPlan = async (
  door: TestDoor,
  names: readonly string[],
  fixture: string,
  args: readonly string[] = [],
): Promise<BubblewrapPlan> => {
  const uid = ownUid()
  const user = { uid, gid: uid, isSelf: false }
  const network = await planNetwork({ name: 'probe', egress: names.map(grantOf) }, door.openDoor, user)
  return planOf(['/opt/node', `/app/${fixture}`, ...args], {
    spec: {
      network,
      files: withResolver(etcFiles, names.map(grantOf)),
      ...(process.getuid?.() === 0 ? { hostUid: uid, hostGid: uid } : {}),
      mounts: [mountOf(process.execPath, '/opt/node'), mountOf(fixtures, '/app')],
    },
  })
}
