// What is verified: a profile, in which the probes are the only server, or a server as its configuration has it.
import { basename, dirname, join } from 'node:path'
import { userFolder } from '../config/find.ts'
import type { Host } from '../config/host.ts'
import { settingsOf } from '../config/load.ts'
import { SallyportError } from '../errors.ts'
import { findProbesBinary } from '../sandbox/init-binary.ts'
import type { SandboxSpec } from '../sandbox/spec.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'
import type { Scene } from './probe.ts'

export interface Subject {
  readonly settings: Settings
  readonly server: ServerSettings
  readonly profile: ProfileSettings
  /** Whether the server is somebody's own, in whose place the probes stand, and which is run itself too */
  readonly isReal: boolean
}

/** The spec with what the profile says of it, not what the plan made of that: what is expected of a sandbox is its profile's word. */
export const asStated = (
  spec: SandboxSpec,
  { exec, syscalls, limits, filesystem }: ProfileSettings,
): SandboxSpec => ({ ...spec, exec, syscalls, limits: { ...limits, tmpBytes: filesystem.tmpBytes } })

/** What profile and server ask to have mounted, by their own words. */
export const askedOf = ({ profile, server }: Subject): Scene['asked'] => {
  const { read, write } = profile.filesystem
  const code = server.package
  return [
    ...read.map(({ path }) => ({ target: path, access: 'read' as const })),
    ...write.map(({ path }) => ({ target: path, access: 'write' as const })),
    ...server.mounts.map(({ target, access }) => ({ target, access })),
    ...(code === null
      ? []
      : [code.target, ...code.with.map((folder) => join(dirname(code.target), basename(folder)))]
    ).map((target) => ({ target, access: 'read' as const })),
  ]
}

/** A profile by itself. Throws ERR_PROFILE_… where it cannot be loaded. */
export const subjectOfProfile = async (
  profile: string,
  {
    host,
    directory,
    driver = 'bubblewrap',
    runtime,
  }: {
    readonly host: Host
    readonly directory?: string
    readonly driver?: ServerSettings['driver']
    readonly runtime?: string
  },
): Promise<Subject> => {
  const name = 'sallyport-probes'
  const value = {
    version: 1,
    allowed_commands: [{ name, path: await findProbesBinary() }],
    servers: {
      probes: {
        command: name,
        args: ['/sallyport/attempts'],
        version: '1',
        justification: 'a verification',
        profile,
        driver,
        ...(runtime !== undefined && { runtime }),
      },
    },
  }
  const settings = await settingsOf(value, directory ?? userFolder(host), host)
  return { ...named(settings, 'probes'), isReal: false }
}

/** A server of a configuration. Throws ERR_SERVER_NOT_FOUND, or ERR_SERVER_DISABLED for one that does not run. */
export const subjectOfServer = (settings: Settings, name: string): Subject => {
  const { server, profile } = named(settings, name)
  if (!server.enabled)
    throw new SallyportError(
      'ERR_SERVER_DISABLED',
      `${server.disabledReason ?? `server ${name} is disabled`}, so there is nothing to verify; enable it, or leave it out`,
      { server: name },
    )
  return { settings, server, profile, isReal: true }
}

const named = (settings: Settings, name: string): Pick<Subject, 'settings' | 'server' | 'profile'> => {
  const server = settings.servers.get(name)
  if (server === undefined) {
    const known = [...settings.servers.keys()].join(', ')
    throw new SallyportError(
      'ERR_SERVER_NOT_FOUND',
      `no server is named ${name}; the configuration has ${known === '' ? 'none' : known}`,
      { server: name },
    )
  }
  const profile = settings.profiles.get(server.profile)
  if (profile === undefined)
    throw new SallyportError('ERR_INTERNAL', `the settings have no profile ${server.profile}`, {
      server: name,
    })
  return { settings, server, profile }
}
