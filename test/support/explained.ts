// Asks `explain` and the inside of the same profile's sandbox the same questions: `explained.ts PROFILE FOLDER` prints both.
import { fileURLToPath } from 'node:url'
import { thisHost } from '../../src/config/host.ts'
import { settingsOf } from '../../src/config/load.ts'
import type { ProfileSettings } from '../../src/schema/settings.ts'
import { type ExplainedPath, explainPath, sandboxUserOf } from '../../src/sandbox/explain-path.ts'
import { type Explanation, explainProfile } from '../../src/config/profile-explain.ts'
import type { Subject } from '../../src/config/profile-verdict.ts'
import type { LaunchHost } from '../../src/sandbox/host.ts'
import { launchHost, launchProbe } from './launch.ts'
import { textOf } from './plan.ts'
import { openTestDoor } from './sandbox-door.ts'

/** What the profile `listed` lists, and a server under it asks for. */
export const listedHosts = [
  { host: 'api.example.com', port: 443, reason: 'a test' },
  { host: '*.wild.example.com', port: 443, reason: 'a test' },
]

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
  /** Of variables, hosts and limits, by subject and name */
  readonly said: Readonly<Record<'env' | 'host' | 'limit', Readonly<Record<string, Explanation>>>>
  readonly inside: Inside
}

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

/** Profile -> what was said and found. */
export type Comparison = Readonly<Record<string, Compared>>

interface Asked {
  readonly paths: readonly string[]
  readonly hosts: readonly string[]
  readonly variables: readonly string[]
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
  { paths, hosts, variables }: Asked,
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
          ...(profile === 'listed' && { egress: listedHosts }),
        },
      },
    },
    folder,
    thisHost(),
  )
  const given = settings.profiles.get(profile) as ProfileSettings
  const explain = (subject: Subject, names: readonly string[]): Promise<Record<string, Explanation>> =>
    explainAll(given, subject, names)
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
  const inside = JSON.parse(stdout) as Inside
  const said = {
    env: await explain('env', [...new Set([...variables, ...Object.keys(inside.variables)])]),
    host: await explain('host', hosts),
    limit: await explain('limit', ['open_files', 'file_bytes', 'tmp']),
  }
  return { explained, said, inside }
}

const explainAll = async (
  profile: ProfileSettings,
  subject: Subject,
  names: readonly string[],
): Promise<Record<string, Explanation>> => {
  const unasked = (): never => {
    throw new Error('neither paths nor system calls are asked about')
  }
  const said: Record<string, Explanation> = {}
  for (const name of names) said[name] = await explainProfile(profile, subject, name, unasked, unasked)
  return said
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [profiles = '[]', folder = '', asked = '{}'] = process.argv.slice(2)
  const found = await compare(JSON.parse(profiles) as string[], folder, JSON.parse(asked) as Asked)
  process.stdout.write(JSON.stringify(found))
}
