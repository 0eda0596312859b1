// Server, profile and host become one frozen spec: what a launch confines, with nothing left to decide.
import { randomInt } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { SallyportError } from '../errors.ts'
import type { InstanceId } from '../lib/ids.ts'
import { isMissing } from '../lib/missing.ts'
import { isNormal, isWithin } from '../lib/path-overlap.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'
import { judgeArguments } from './program/arguments.ts'
import { withResolver } from './mounts/etc.ts'
import type { FilesystemFacts, FilesystemPlan, Program } from './mounts/filesystem.ts'
import { isOfTheMachine } from './mounts/mount-source.ts'
import type { SandboxUser } from './mounts/reachable.ts'
import { argumentRequest, type Registration } from './registrations.ts'
import type { Mount, SandboxSpec } from './spec.ts'

export interface ResolveRequest {
  readonly server: ServerSettings
  readonly profile: ProfileSettings
  readonly settings: Pick<Settings, 'interpreterOptions'>
  readonly instance: InstanceId
  /** What `Registrations.verified` returned for this very launch */
  readonly registration: Registration
}

/** What the daemon knows of itself and its host; gathered at its edge. */
export interface HostFacts extends FilesystemFacts {
  /** The daemon's own ids */
  readonly uid: number
  readonly gid: number
  /** Gid for a uid that is not the daemon's, or null where there is none that is that user's */
  readonly groupOf: (uid: number) => number | null
  /** Host uids of the daemon's other sandboxes; a fresh one is none of them */
  readonly uidsInUse: ReadonlySet<number>
}

/** A server of which it is settled what runs, and as whom. Environment and mounts are not, yet. */
export interface ResolvedServer extends ResolveRequest {
  readonly user: SandboxUser
  /** Whether the programs are an image's */
  readonly hasImage: boolean
  /** The files that are executed, an interpreter before its script */
  readonly programs: readonly Program[]
  /** Everything behind argv[0] that the settings gave */
  readonly args: readonly string[]
  /** The script that an interpreter runs, or null */
  readonly script: string | null
}

/** Uids that no account has: a root daemon gives each sandbox one of these 2^24. */
const firstFreshUid = 1_900_000_000
const freshUids = 1 << 24

/**
 * Returns what runs and as whom.
 *
 * 1. refuse what this version can't enforce, by name
 * 2. the user: the daemon's own, or for a root daemon `run_as` with its account's group, or a fresh uid; never 0
 * 3. the arguments, judged
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE or ERR_ARGUMENT_REFUSED.
 */
export const resolveServer = (request: ResolveRequest, facts: HostFacts): ResolvedServer => {
  const { server, registration, settings } = request
  const { command } = registration
  judgeEnforceable(server)
  const user = chooseUser(server, facts)
  const { args, script } = judgeArguments(argumentRequest(server, command, settings))
  const executed = { path: command.file.path, name: basename(command.path) }
  const { interpreter } = command
  const programs =
    interpreter === null
      ? [executed]
      : [{ path: interpreter.file.path, name: basename(interpreter.path) }, executed]
  return { ...request, user, programs, hasImage: registration.image !== null, args, script }
}

/**
 * Returns the spec of one launch, frozen to its depth, after a last look: script and working directory lie where they may.
 *
 * Throws ERR_ARGUMENT_REFUSED or ERR_MOUNT_REFUSED.
 */
export const settleSpec = async (
  { server, profile, instance, registration, user, programs, args, script }: ResolvedServer,
  variables: SandboxSpec['environment'],
  { mounts, links, files, programPaths }: FilesystemPlan,
  supplied: Pick<SandboxSpec, 'network' | 'files' | 'hasCredentialFiles'>,
): Promise<SandboxSpec> => {
  const { network } = supplied
  if (script !== null && !isInImage(registration, script, mounts))
    await judgeScript(server.name, script, mounts)
  const { command } = registration
  const [path = '', scriptPath] = programPaths
  // As the kernel would start a script: its interpreter, the first line's argument, the script.
  const firstLine = command.interpreter?.argument
  const started = scriptPath === undefined ? [] : [...(firstLine ? [firstLine] : []), scriptPath]
  const argv0 = programs[0]?.name ?? command.name
  const spec: SandboxSpec = {
    server: server.name,
    instance,
    profile: profile.name,
    program: { path, argv: [argv0, ...started, ...args] },
    cwd: judgeCwd(server, mounts, registration),
    environment: variables,
    hostUid: user.uid,
    hostGid: user.gid,
    mounts,
    links,
    files: [...(network.mode === 'none' ? files : withResolver(files, network.grants)), ...supplied.files],
    network,
    hasCredentialFiles: supplied.hasCredentialFiles,
    exec: profile.exec,
    syscalls: profile.syscalls,
    limits: { ...profile.limits, tmpBytes: profile.filesystem.tmpBytes },
    stop: server.stop,
  }
  return freeze(structuredClone(spec))
}

const judgeEnforceable = (server: ServerSettings): void => {
  const asked = server.unenforceable
  if (asked.length > 0)
    throw new SallyportError(
      'ERR_SANDBOX_UNENFORCEABLE',
      `server ${server.name} asks for ${asked.join(', ')}, which this version cannot enforce; remove it`,
      { server: server.name, controls: asked },
    )
}

const chooseUser = ({ name, runAs }: ServerSettings, facts: HostFacts): SandboxUser => {
  const { uid, gid, uidsInUse, groupOf } = facts
  if (uid !== 0) {
    if (runAs === null || runAs === uid) return { uid, gid, isSelf: true }
    throw unenforceableUser(
      name,
      runAs,
      `the daemon runs as ${uid} and only root may change its uid; remove run_as`,
    )
  }
  if (runAs === 0) throw unenforceableUser(name, runAs, 'no sandbox runs as root; choose another uid')
  if (runAs !== null) {
    const group = groupOf(runAs)
    if (group !== null) return { uid: runAs, gid: group, isSelf: false }
    throw unenforceableUser(
      name,
      runAs,
      'it has no account, and the group of that number is of others; make it one',
    )
  }
  for (;;) {
    const fresh = firstFreshUid + randomInt(freshUids)
    if (!uidsInUse.has(fresh)) return { uid: fresh, gid: fresh, isSelf: false }
  }
}

const unenforceableUser = (server: string, runAs: number, why: string): SallyportError =>
  new SallyportError('ERR_SANDBOX_UNENFORCEABLE', `run_as ${runAs} of server ${server} is refused: ${why}`, {
    server,
  })

/** Folders of every sandbox that a server writes to, and so no place for its code. */
const scratch = ['/tmp', '/home/user', '/dev', '/proc', '/sallyport']

// The image's own files are read-only, and pinned with it: all but what is mounted over, and its volumes, which are empty.
const isInImage = ({ image }: Registration, path: string, mounts: readonly Mount[]): boolean =>
  image !== null &&
  isNormal(path) &&
  ![...scratch, ...image.volumes, ...mounts.map(({ target }) => target)].some((place) =>
    isWithin(path, place),
  )

// What is executed must be code that nobody can change from inside: a file, in a read-only mount, links followed.
const judgeScript = async (server: string, script: string, mounts: readonly Mount[]): Promise<void> => {
  const holder = mounts.find(({ target }) => isWithin(script, target))
  const refuse = (what: string, mend: string): SallyportError =>
    new SallyportError(
      'ERR_ARGUMENT_REFUSED',
      `server ${server}: script ${JSON.stringify(script)} ${what}; ${mend}`,
      {
        server,
        script,
      },
    )
  if (holder === undefined)
    throw refuse(
      'lies in no mount of the sandbox',
      'mount its package, and give its path below package.target',
    )
  if (holder.access === 'write')
    throw refuse(
      `lies in the writable mount ${holder.target}`,
      'make its folder the package, outside of every writable mount',
    )
  const path = join(holder.source, relative(holder.target, script))
  try {
    const atOnce = isOfTheMachine(holder)
    const real = atOnce ? realpathSync.native(path) : await realpath(path)
    const place = mounts.find(({ source, access }) => access === 'read' && isWithin(real, source))
    if (place === undefined)
      throw refuse(`leads to ${real}, outside of the read-only mounts`, 'name the file itself')
    const found = atOnce ? statSync(real) : await stat(real)
    if (!found.isFile()) throw refuse('is not a regular file', 'name the script’s file')
  } catch (error) {
    if (isMissing(error)) throw refuse(`does not exist, it would be ${path}`, 'correct the path')
    throw error
  }
}

const judgeCwd = (
  { name, cwd }: ServerSettings,
  mounts: readonly Mount[],
  registration: Registration,
): string => {
  if (cwd === null) return '/home/user'
  if (isNormal(cwd) && isInImage(registration, cwd, mounts)) return cwd
  const folders = [
    '/tmp',
    '/home/user',
    ...mounts.filter(({ kind }) => kind === 'directory').map(({ target }) => target),
  ]
  if (isNormal(cwd) && folders.some((folder) => isWithin(cwd, folder))) return cwd
  throw new SallyportError(
    'ERR_MOUNT_REFUSED',
    `cwd ${JSON.stringify(cwd)} of server ${name} is not a folder of the sandbox (${folders.join(', ')}); choose one of these or below`,
    { server: name, cwd },
  )
}

const freeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const part of Object.values(value)) freeze(part)
  }
  return value
}
