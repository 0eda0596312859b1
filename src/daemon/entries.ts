// From an entry that came beside the configuration, the operator's or a host's, to settings that are judged as its own are.
import { dirname } from 'node:path'
import type { Host } from '../config/host.ts'
import { SallyportError } from '../errors.ts'
import { late } from '../lib/late.ts'
import type { LaunchRequest } from '../rpc/governed.ts'
import type { CredentialSource } from '../schema/credentials.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'

// What judges entries is much code, which most daemons never need again.
const judging = late(() => import('../config/load.ts'))

/** A server's entry as the operator wrote it. */
export interface Registered {
  readonly server: string
  readonly entry: Readonly<Record<string, unknown>>
  /** Folder from which its relative paths go */
  readonly directory: string
  readonly by: string
}

/** A server that a host launched: what it asked for, and the principal who alone may see it. */
export interface Launched {
  readonly owner: string
  readonly request: LaunchRequest
}

/** An entry as it came out. */
export interface Judged {
  readonly server: ServerSettings
  readonly profile: ProfileSettings
}

/** Where an entry comes from. */
export interface Place {
  readonly directory?: string
  readonly scope: ServerSettings['scope']
}

/** What entries are judged by. */
interface Standing {
  readonly settings: Settings
  readonly profiles: ReadonlyMap<string, ProfileSettings>
}

/** The entry that `dynamic` makes of what a host asks for; throws ERR_DYNAMIC_REFUSED where hosts may launch nothing. */
export function launchEntry({ dynamic }: Settings, { owner, request }: Launched): Registered['entry'] {
  const { name, command, args = [], package: code } = request
  if (!dynamic.enabled)
    throw notLaunched(name, 'dynamic.enabled is false', 'the operator sets it to true in the configuration')
  return {
    command,
    args,
    ...(code === undefined ? {} : { package: code }),
    profile: dynamic.profile,
    trust: dynamic.trust,
    acceptance: dynamic.acceptance,
    tools: { allow: dynamic.allow },
    justification: `launched by uid ${owner}, as the operator's dynamic settings allow`,
  }
}

/** A host's launch that is refused: why, and what helps. */
export const notLaunched = (server: string, why: string, mend: string): SallyportError =>
  new SallyportError('ERR_DYNAMIC_REFUSED', `${server} was not launched: ${why}; ${mend}`, { server })

/** Judges an entry as if it stood in these settings, with these profiles. Throws what loading a configuration throws. */
export async function judge(
  { settings, profiles }: Standing,
  server: string,
  entry: Registered['entry'],
  { directory, scope, host }: Place & { readonly host: Host },
): Promise<Judged> {
  const value = {
    version: 1,
    allowed_commands: settings.allowedCommands.map(({ name, path, interpreter }) => ({
      name,
      ...(path === null ? {} : { path }),
      ...(interpreter === null ? {} : { interpreter }),
    })),
    command_path: settings.commandPath,
    interpreter_options: settings.interpreterOptions,
    mode: settings.mode,
    driver: settings.driver,
    credentials: writtenSources(settings.credentials),
    servers: { [server]: entry },
  }
  const beside = dirname(settings.sources[0]?.path ?? '/')
  const source = scope === 'dynamic' ? 'the launch' : 'the registration'
  const { settingsOf } = await judging()
  const judged = await settingsOf(value, directory ?? beside, host, source)
  const found = judged.servers.get(server)
  const profile = judged.profiles.get(found?.profile ?? '')
  if (found === undefined || profile === undefined) throw new Error(`${server} has no settings`)
  expectSameProfile(profiles, { server: found, profile })
  return { server: { ...found, scope }, profile }
}

/** One name means one profile. */
export function expectSameProfile(
  profiles: Standing['profiles'],
  { server: { name: server }, profile }: Judged,
): void {
  const known = profiles.get(profile.name)
  if (known !== undefined && known.path !== profile.path)
    throw new SallyportError(
      'ERR_PROFILE_INVALID',
      `${server}: the profile ${profile.name} is ${profile.path} there, and ${known.path} for the servers that run already; rename one of the two`,
      { server, profile: profile.name },
    )
}

/** Sources as a configuration writes them. */
function writtenSources(sources: Settings['credentials']): Readonly<Record<string, unknown>> {
  const written = (source: CredentialSource): unknown => {
    switch (source.kind) {
      case 'env':
        return { env: source.variable }
      case 'file':
        return { file: source.path }
      case 'command':
        return { command: source.argv }
    }
  }
  return Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, written(source)]))
}
