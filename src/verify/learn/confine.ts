// One run of a drive: the server in a real sandbox of a profile, observed or not, and what it answered.
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import type { Host } from '../../config/host.ts'
import { settingsOf } from '../../config/load.ts'
import { openDoor } from '../../egress/door.ts'
import { SallyportError } from '../../errors.ts'
import { newInstanceId } from '../../lib/ids.ts'
import type { LaunchHost } from '../../sandbox/host.ts'
import { launch, noSupply } from '../../sandbox/launch.ts'
import { type Door, type EgressEvent, type EgressLimits, tlsPorts } from '../../schema/egress.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../../schema/settings.ts'
import { describeExit } from '../../supervisor/instance/process-end.ts'
import { stop } from '../../supervisor/instance/stop.ts'
import type { Janitor } from '../lab/janitor.ts'
import { copyAll } from './copies.ts'
import type { Drive } from './drive.ts'
import type { Observation } from './observation.ts'
import { Observer } from './observer.ts'
import type { Answer } from './talk.ts'

/** What is run, the same in every run. */
export interface Subject {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

/** Where runs are made. */
export interface Place {
  readonly host: Host
  readonly launchHost: LaunchHost
  /** Takes away what is left where the learning is killed */
  readonly janitor: Janitor
  /** Folder of this learning, short enough for the path of a socket */
  readonly folder: string
  readonly subject: Subject
  readonly onStderr: (line: string) => void
  readonly signal: AbortSignal
}

/** What the profile of one run is, and where it is found by its name. */
export interface RunOf {
  readonly profile: string
  readonly directory: string
  /** Changes the loaded profile, for runs of what is no file yet */
  readonly alter?: (profile: ProfileSettings) => ProfileSettings
  readonly drive: Drive
}

export interface Ran {
  readonly answers: readonly Answer[]
  /** How the server ended, where that was not because it was asked to */
  readonly exit: string | null
  readonly egress: readonly EgressEvent[]
}

const limits: EgressLimits = {
  connections: 64,
  connectMs: 10_000,
  handshakeMs: 10_000,
  idleMs: 60_000,
  totalMs: 600_000,
  bytesUp: 67_108_864,
  bytesDown: 1_073_741_824,
}
/** Most events that are kept; a flood is counted by the door already */
const eventsKept = 10_000
/** Uids that no account has, for runs of root with copies: they must belong to whoever runs */
const firstUid = 1_880_000_000
const uids = 10_000_000

/** Runs and returns what was answered. Throws as a launch does. */
export const runOnce = async (place: Place, run: RunOf): Promise<Ran> => (await runWith(place, run, null)).ran

/** The same, observed. */
export const runObserved = async (
  place: Place,
  run: RunOf,
): Promise<{ readonly ran: Ran; readonly observation: Observation }> => {
  await using observer = new Observer()
  const { ran } = await runWith(place, run, observer)
  return { ran, observation: await observer.seen() }
}

const runWith = async (
  place: Place,
  { profile: named, directory, alter, drive }: RunOf,
  observer: Observer | null,
): Promise<{ readonly ran: Ran }> => {
  const { launchHost, signal } = place
  const { settings, server: plain, profile: loaded } = await settingsFor(place, named, directory)
  const wanted = alter?.(loaded) ?? loaded
  const writes = wanted.filesystem.write.map(({ path }) => path)
  const runAs = launchHost.facts.uid === 0 && writes.length > 0 ? firstUid + randomInt(uids) : null
  await using copies = await copyAll(writes, runAs, place.janitor)
  const profile = withCopies(wanted)
  const egress: EgressEvent[] = []
  await using doors = doorsFor(place, profile, egress)
  const server: ServerSettings = {
    ...plain,
    mounts: copies.mounts,
    egress: doors.grants,
    runAs,
  }
  const supply = { ...noSupply, openDoor: profile.network.mode === 'none' ? null : doors.open }
  await using process = await launch(
    { server, profile, settings, instance: newInstanceId(), supply },
    launchHost,
    { signal, ...(observer === null ? {} : { atGate: observer.attach }) },
  )
  listen(process.stderr, place.onStderr)
  const answers = await drive.run(process, signal)
  const early = await Promise.race([process.ended, Promise.resolve(null)])
  const exit = early ?? (await stop(process, { eofMs: 1000, termMs: 1000 }))
  const isOurs = early === null || (exit.reason === 'exited' && exit.code === 0)
  return { ran: { answers, exit: isOurs ? null : describeExit(exit), egress } }
}

const settingsFor = async (
  { host, subject }: Place,
  profile: string,
  directory: string,
): Promise<{ settings: Settings; server: ServerSettings; profile: ProfileSettings }> => {
  const { name, command, args } = subject
  const value = {
    version: 1,
    allowed_commands: [command.includes('/') ? { name, path: command } : command],
    servers: {
      [name]: {
        command: command.includes('/') ? name : command,
        args: [...args],
        version: '1',
        justification: 'it is learned',
        profile,
      },
    },
  }
  const settings = await settingsOf(value, directory, host)
  const server = settings.servers.get(name)
  const found = settings.profiles.get(profile)
  if (server === undefined || found === undefined)
    throw new SallyportError('ERR_INTERNAL', `settings of ${name} have no server to learn`, { profile })
  return { settings, server, profile: found }
}

/** Nothing that nobody has read yet writes to the real folders. */
const withCopies = (profile: ProfileSettings): ProfileSettings => ({
  ...profile,
  filesystem: { ...profile.filesystem, write: [], mounts: 'write' },
})

/** The door of one run, where its profile has a network: what is listed leads out, and everything else is told. */
const doorsFor = ({ folder, subject }: Place, { network }: ProfileSettings, egress: EgressEvent[]) => {
  const opened: Door[] = []
  const grants = network.allow.map((grant) => ({ ...grant, tls: tlsPorts.has(grant.port) }))
  return {
    grants,
    open: async ({ uid }: { readonly uid: number }): Promise<string> => {
      const instance = newInstanceId()
      const watch = {
        event: (event: EgressEvent) => void (egress.length < eventsKept && egress.push(event)),
        mayConnect: () => ({ open: true }) as const,
      }
      const path = join(folder, instance, 'door')
      const policy = { server: subject.name, instance, grants, limits }
      const door = await openDoor(policy, { watch, interceptor: null, screen: null, path, uid })
      opened.push(door)
      return door.path
    },
    async [Symbol.asyncDispose]() {
      for (const door of opened) await door[Symbol.asyncDispose]()
    },
  }
}

const listen = (stream: NodeJS.ReadableStream, hear: (line: string) => void): void => {
  let held = ''
  stream.on('data', (chunk: Buffer) => {
    const lines = `${held}${chunk.toString()}`.split('\n')
    held = (lines.pop() ?? '').slice(-4096)
    for (const line of lines) hear(line.slice(0, 4096))
  })
}
