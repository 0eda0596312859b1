// Asks `explain` and the inside of the same profile's sandbox the same questions: `explained.ts PROFILE FOLDER` prints both.
import { fileURLToPath } from 'node:url'
import { thisHost } from '../../src/config/host.ts'
import { settingsOf } from '../../src/config/load.ts'
import type { ProfileSettings } from '../../src/schema/settings.ts'
import { type ExplainedPath, explainPath, sandboxUserOf } from '../../src/sandbox/explain-path.ts'
import type { LaunchHost } from '../../src/sandbox/host.ts'
import { launchHost, launchProbe } from './launch.ts'
import { textOf } from './plan.ts'
import { openTestDoor } from './sandbox-door.ts'

/** What a program found of one path: errno or `ok`. */
export interface Look {
  readonly found: string
  readonly named: string
  readonly read: string
  readonly write: string
  readonly holds: readonly string[] | string | null
}

export interface Inside {
  readonly paths: Readonly<Record<string, Look>>
  readonly variables: Readonly<Record<string, string>>
  readonly hosts: Readonly<Record<string, string>>
  readonly limits: string
  readonly scratchBytes: number
}

export interface Compared {
  readonly explained: Readonly<Record<string, ExplainedPath>>
  readonly inside: Inside
}

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

/** Profile -> what was said and found. */
export type Comparison = Readonly<Record<string, Compared>>

interface Asked {
  readonly paths: readonly string[]
  readonly hosts?: readonly string[]
}

/** Explains the paths for each profile, and looks at them in its sandboxes; `folder` may hold profiles in `profiles/`. */
export const compare = async (
  profiles: readonly string[],
  folder: string,
  asked: Asked,
): Promise<Comparison> => {
  await using host = await launchHost()
  const all = await Promise.all(profiles.map((profile) => compareOne(profile, folder, asked, host)))
  return Object.fromEntries(profiles.map((name, index) => [name, all[index] as Compared]))
}

const compareOne = async (
  profile: string,
  folder: string,
  { paths, hosts = [] }: Asked,
  host: LaunchHost,
): Promise<Compared> => {
  const settings = await settingsOf(
    {
      version: 1,
      allowed_commands: [{ name: 'node', path: process.execPath }],
      servers: {
        probe: {
          command: 'node',
          args: ['/app/looks.mjs', JSON.stringify({ paths, hosts })],
          package: { source: fixtures, target: '/app' },
          version: '1',
          justification: 'a test',
          profile,
        },
      },
    },
    folder,
    thisHost(),
  )
  const given = settings.profiles.get(profile) as ProfileSettings
  const user = sandboxUserOf(process.getuid?.() ?? -1, process.getgid?.() ?? -1)
  const facts = { own: [], homes: [], environment: {} }
  const explained: Record<string, ExplainedPath> = {}
  for (const path of paths) explained[path] = await explainPath(given, path, user, facts)
  await using door = await openTestDoor()
  const openDoor = given.network.mode === 'allowlist' ? door.openDoor : null
  await using server = await launchProbe(settings, host, openDoor)
  server.stdin.end()
  const [stdout, stderr] = await Promise.all([textOf(server.stdout), textOf(server.stderr), server.ended])
  if (stdout === '') throw new Error(`the fixture said nothing: ${stderr}`)
  return { explained, inside: JSON.parse(stdout) as Inside }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [profiles = '[]', folder = '', asked = '{}'] = process.argv.slice(2)
  const found = await compare(JSON.parse(profiles) as string[], folder, JSON.parse(asked) as Asked)
  process.stdout.write(JSON.stringify(found))
}
