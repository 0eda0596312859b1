// What a server finds of the file system: the plan of its mounts, each with a reason, none that the denials forbid.
import { basename, dirname, join, relative } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { PackageSettings, ProfileSettings, ServerSettings } from '../../schema/settings.ts'
import { findDenials, type DenialFacts } from './denials.ts'
import { judgeMounts, type MountRules, mountRules } from './mount-rules.ts'
import { needMount } from './mount-source.ts'
import { etcFiles } from './etc.ts'
import type { SandboxUser } from './reachable.ts'
import { planRuntime } from './runtime-mounts.ts'
import type { DataFile, Link, Mount } from '../spec.ts'

export interface FilesystemRequest {
  readonly server: Pick<ServerSettings, 'name' | 'mounts' | 'package'>
  readonly profile: Pick<ProfileSettings, 'name' | 'filesystem'>
  /** The files that are executed, an interpreter before its script: real host path, and the name that is shown */
  readonly programs: readonly Program[]
  /** Whether an image brings root and programs, so that nothing of the host's runtime is shown */
  readonly hasImage?: boolean
  readonly user: SandboxUser
}

/** What the daemon knows of its host. */
export interface FilesystemFacts extends DenialFacts {
  /** What the mounts are held to: all there is, where it is left out */
  readonly rules?: MountRules
}

export interface Program {
  readonly path: string
  readonly name: string
}

export interface FilesystemPlan {
  readonly mounts: readonly Mount[]
  readonly links: readonly Link[]
  readonly files: readonly DataFile[]
  /** Where each program is in the sandbox */
  readonly programPaths: readonly string[]
}

/**
 * Returns what to mount where.
 *
 * 1. the profile's reads, at the same path, with the root's links into /usr; what this host lacks is left out, and all of it where
 *    an image has files of its own there
 * 2. the package: `source` at `target`, and each `with` folder beside the target under its own name
 * 3. the server's own mounts
 * 4. the programs, where none of the read-only trees holds them already
 * 5. every source and target judged, after symbolic links: see `MountRules`
 * 6. what is protected inside writable mounts, read-only on top
 *
 * Throws ERR_MOUNT_REFUSED, ERR_PACKAGE_UNSAFE, ERR_COMMAND_UNSAFE or ERR_PROFILE_EXCEEDED.
 */
export const planFilesystem = async (
  request: FilesystemRequest,
  facts: FilesystemFacts,
): Promise<FilesystemPlan> => {
  const { server, profile, programs, hasImage = false, user } = request
  const { rules = mountRules } = facts
  const { mounts: runtime, links } = hasImage ? nothing : await planRuntime(profile.filesystem.read)
  const code = server.package === null ? [] : await planPackage(server.name, server.package)
  const granted = [...(await planProfileWrites(profile)), ...(await planServerMounts(server, profile))]
  const placed = await Promise.all(
    programs.map(async (program) =>
      hasImage ? { mounts: [], path: program.path } : placeProgram(program, [...runtime, ...code]),
    ),
  )
  const mounts = [...runtime, ...code, ...placed.flatMap(({ mounts: own }) => own), ...granted]
  const denials = findDenials(
    facts,
    mounts.map(({ source }) => source),
  )
  const executed = hasImage ? [] : programs.map(({ path }) => path)
  judgeMounts({ server: server.name, mounts, denials, programs: executed }, rules)
  for (const mount of mounts) await rules.reachable(server.name, mount, user)
  const guards: Mount[] = []
  for (const mount of granted)
    if (mount.access === 'write') guards.push(...(await rules.guards(server.name, mount)))
  return {
    mounts: [...mounts.toSorted((one, other) => depthOf(one.target) - depthOf(other.target)), ...guards],
    links,
    files: etcFiles,
    programPaths: placed.map(({ path }) => path),
  }
}

const nothing = { mounts: [], links: [] } as const

const depthOf = (path: string): number => path.split('/').length

/** Throws ERR_MOUNT_REFUSED where an entry's own targets can stand in no sandbox, whatever is at their sources. */
export const judgeOwnTargets = ({ name, package: code, mounts }: FilesystemRequest['server']): void => {
  const trees = code === null ? [] : treesOf(code)
  const own = mounts.map(({ source, target }) => ({ source, target, origin: 'server' as const }))
  mountRules.targets({ server: name, mounts: [...trees, ...own] })
}

const treesOf = ({ source, target, with: further }: PackageSettings) =>
  [
    { source, target },
    // Beside, not below: no folder can be made inside a read-only mount, and Node looks for node_modules upwards.
    ...further.map((folder) => ({ source: folder, target: join(dirname(target), basename(folder)) })),
  ].map((tree) => ({ ...tree, origin: 'package' as const }))

const planPackage = async (server: string, code: PackageSettings): Promise<Mount[]> => {
  const reason = 'the server’s code'
  return Promise.all(treesOf(code).map((tree) => needMount(server, { ...tree, access: 'read', reason })))
}

const planProfileWrites = async ({ name, filesystem }: FilesystemRequest['profile']): Promise<Mount[]> =>
  Promise.all(
    filesystem.write.map(({ path, reason }) =>
      needMount(`profile ${name}`, {
        source: path,
        target: path,
        access: 'write',
        reason,
        origin: 'profile',
      }),
    ),
  )

const planServerMounts = async (
  server: FilesystemRequest['server'],
  profile: FilesystemRequest['profile'],
): Promise<Mount[]> => {
  const ceiling = profile.filesystem.mounts
  for (const { target, access: wanted } of server.mounts)
    if (ceiling === 'none' || (ceiling === 'read' && wanted === 'write'))
      throw new SallyportError(
        'ERR_PROFILE_EXCEEDED',
        `mount ${target} of server ${server.name} asks for ${wanted}, profile ${profile.name} says mounts: ${ceiling}; choose another profile or remove the mount`,
        { server: server.name, profile: profile.name, target },
      )
  return Promise.all(server.mounts.map((mount) => needMount(server.name, { ...mount, origin: 'server' })))
}

// Where no tree holds it, a mount of the one file: its folder may hold anything.
const placeProgram = async (
  { path, name }: Program,
  held: readonly Mount[],
): Promise<{ readonly mounts: readonly Mount[]; readonly path: string }> => {
  const holder = held.find(({ source }) => isWithin(path, source))
  if (holder !== undefined) return { mounts: [], path: join(holder.target, relative(holder.source, path)) }
  const target = `/sallyport/bin/${name}`
  const reason = 'a program that the server is started with'
  const mount = await needMount(name, { source: path, target, access: 'read', reason, origin: 'program' })
  return { mounts: [mount], path: target }
}
