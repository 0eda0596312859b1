// Launches fixtures through the whole sequence, with settings that are read as a config's are.
import { chmod } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { thisHost } from '../../src/config/host.ts'
import { settingsOf } from '../../src/config/load.ts'
import { newDaemonId, newInstanceId } from '../../src/lib/ids.ts'
import { silent } from '../../src/lib/logger.ts'
import type { SandboxProcess } from '../../src/sandbox/driver.ts'
import { createLaunchHost, type LaunchHost } from '../../src/sandbox/host.ts'
import { launch, noSupply } from '../../src/sandbox/launch.ts'
import type { OpenDoor } from '../../src/sandbox/network.ts'
import { pinFileKept } from '../../src/sandbox/program/known-programs.ts'
import { pinFileOnce } from '../../src/sandbox/program/pinned-file.ts'
import type { ProfileSettings, Settings } from '../../src/schema/settings.ts'
import { textOf } from './plan.ts'
import { knownPrograms } from './probe-folder.ts'
import { tempDir } from './temp-dir.ts'
import { patienceMs } from './patience.ts'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

/** What a test may want different: keys of the server's entry, and limits of its profile. */
export type Difference = Readonly<Record<string, unknown>> & {
  readonly limits?: Readonly<Record<string, number>>
}

/** Settings of one server `probe`, which runs the fixture under this Node. */
export const settingsFor = async (
  fixture: string,
  args: readonly string[],
  { limits = {}, ...more }: Difference = {},
): Promise<Settings> => {
  const value = {
    version: 1,
    allowed_commands: [{ name: 'node', path: process.execPath }],
    servers: {
      probe: {
        command: 'node',
        args: [`/app/${fixture}`, ...args],
        package: { source: fixtures, target: '/app' },
        version: '1',
        justification: 'a test',
        profile: 'node',
        ...more,
      },
    },
  }
  const settings = await settingsOf(value, fixtures, thisHost())
  const { tmpBytes, ...others } = limits
  const profiles = [...settings.profiles].map(([name, profile]): [string, ProfileSettings] => {
    const filesystem = { ...profile.filesystem, tmpBytes: tmpBytes ?? profile.filesystem.tmpBytes }
    return [name, { ...profile, filesystem, limits: { ...profile.limits, ...others } }]
  })
  return { ...settings, profiles: new Map(profiles) }
}

/** What the runtime was found to be is read once for all tests, as a daemon of theirs does. */
const known = knownPrograms()
const pinFile = pinFileOnce(known === undefined ? undefined : pinFileKept(known, silent))

/** A host for launches with a state folder of its own; disposing takes both down. */
export const launchHost = async (
  more: Partial<Parameters<typeof createLaunchHost>[0]> = {},
): Promise<LaunchHost> => {
  const state = await tempDir()
  await chmod(state.path, 0o700)
  const host = await createLaunchHost({
    daemon: newDaemonId(),
    stateDirectory: state.path,
    own: [state.path],
    homes: [],
    environment: {},
    drivers: ['bubblewrap'],
    pinFile,
    log: silent,
    ...more,
  })
  return {
    ...host,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
    },
  }
}

/** Launches the one server of the settings. */
export const launchProbe = async (
  settings: Settings,
  host: LaunchHost,
  openDoor: OpenDoor | null = null,
  signal: AbortSignal = AbortSignal.timeout(patienceMs),
): Promise<SandboxProcess> => {
  const server = settings.servers.get('probe')
  const profile = settings.profiles.get(server?.profile ?? '')
  if (server === undefined || profile === undefined)
    throw new Error('the settings have no server named probe')
  return launch(
    { server, profile, settings, instance: newInstanceId(), supply: { ...noSupply, openDoor } },
    host,
    { signal },
  )
}

/** Launches a fixture with a host of its own and returns what it wrote, once all has ended. */
export const outputOf = async (...request: Parameters<typeof settingsFor>): Promise<string> => {
  await using host = await launchHost()
  await using server = await launchProbe(await settingsFor(...request), host)
  server.stdin.end()
  const [stdout, stderr, exit] = await Promise.all([
    textOf(server.stdout),
    textOf(server.stderr),
    server.ended,
  ])
  if (exit.code !== 0) throw new Error(`the fixture ended with ${JSON.stringify(exit)}: ${stderr}`)
  return stdout
}
