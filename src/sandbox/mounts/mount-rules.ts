// Which mounts are refused: sources that a denial forbids, targets that collide, code that could be written.
import { SallyportError, type ErrorCode } from '../../errors.ts'
import { isWithin, overlapOf } from '../../lib/path-overlap.ts'
import type { Denial } from './denials.ts'
import { isProtectedName, protectMount } from './protected.ts'
import { judgeReachable } from './reachable.ts'
import type { Mount } from '../spec.ts'

/** Targets that are the sandbox's own: nothing of a server's is mounted at, above or inside them. */
const ownTargets =
  '/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /proc /sys /dev /boot /run /sallyport'.split(' ')

/** The same for what the profile and the supervisor put there, so that no mount of any kind is in there. */
export const kernelTargets = ['/proc', '/sys', '/dev']

/** Targets that are the sandbox's own, but may hold a mount. */
const scratchTargets = ['/tmp', '/home/user']

/** Where something is put, and whose word that is. */
export type Placed = Pick<Mount, 'source' | 'target' | 'origin'>

/** The mounts of one sandbox, and what stands against them. */
export interface Judged {
  readonly server: string
  readonly mounts: readonly Mount[]
  readonly denials: readonly Denial[]
  /** Real host paths of what is executed; none where an image brings it */
  readonly programs: readonly string[]
}

/** What the mounts of a sandbox are held to. Each rule can only refuse. */
export interface MountRules {
  /** None is or holds another's target, none is the root, or where the sandbox has something of its own */
  targets(judged: Pick<Judged, 'server'> & { readonly mounts: readonly Placed[] }): void
  /**
   * No source is at, above or inside a denied path, after symbolic links. Above counts where the denied path exists, and for
   * writable mounts always. Refused, never masked: a mask falls off when the host replaces the file, and masking what is absent
   * leaves files behind
   */
  sources(judged: Judged): void
  /** No writable source lies in a folder that is protected inside writable mounts */
  runByHost(judged: Judged): void
  /** No package, program or script's file is in a writable mount, nor shares a file with one */
  code(judged: Judged): void
  /** The sandbox's user can use each as it is meant */
  readonly reachable: typeof judgeReachable
  /** What is mounted read-only inside a writable mount */
  readonly guards: typeof protectMount
}

/** All of them: what every launch is held to. They throw ERR_MOUNT_REFUSED, for code ERR_PACKAGE_UNSAFE or ERR_COMMAND_UNSAFE. */
export const mountRules: MountRules = {
  targets({ server, mounts }) {
    for (const mount of mounts) judgeTarget(server, mount)
    for (const [index, mount] of mounts.entries()) judgeNeighbours(server, mount, mounts.slice(0, index))
  },
  sources({ server, mounts, denials }) {
    for (const mount of mounts) judgeSource(server, mount, denials)
  },
  runByHost({ server, mounts }) {
    for (const mount of writable(mounts)) judgeRunByHost(server, mount)
  },
  code({ server, mounts, programs }) {
    for (const mount of writable(mounts)) judgeShared(server, mount, mounts)
    judgePrograms(server, programs, writable(mounts))
  },
  reachable: judgeReachable,
  guards: protectMount,
}

/** Throws where the mounts of one sandbox may not be: by their targets first, then by what they are. */
export const judgeMounts = (judged: Judged, rules: MountRules): void => {
  rules.targets(judged)
  rules.sources(judged)
  rules.runByHost(judged)
  rules.code(judged)
}

const writable = (mounts: readonly Mount[]): readonly Mount[] =>
  mounts.filter(({ access }) => access === 'write')

const judgeTarget = (server: string, mount: Placed): void => {
  const { target, origin } = mount
  const own = origin === 'server' || origin === 'package' ? ownTargets : kernelTargets
  const taken =
    own.find((path) => overlapOf(target, path) !== 'apart') ??
    scratchTargets.find((path) => isWithin(path, target))
  if (taken !== undefined)
    throw refused(
      server,
      mount,
      `overlaps ${taken}, which is the sandbox’s own`,
      'choose a target such as /workspace, or /opt/app for a package',
    )
}

const judgeNeighbours = (server: string, mount: Placed, earlier: readonly Placed[]): void => {
  const other = earlier.find(({ target }) => overlapOf(mount.target, target) !== 'apart')
  if (other !== undefined)
    throw refused(
      server,
      mount,
      `overlaps the mount of ${other.source} at ${other.target}`,
      'choose targets that do not hold one another',
    )
}

const judgeSource = (server: string, mount: Mount, denials: readonly Denial[]): void => {
  const found = denialOf(mount.source, mount.access, denials)
  if (found !== null)
    throw refused(
      server,
      mount,
      found.why,
      found.isAbove ? 'mount a folder that does not hold it' : 'mount something else',
    )
}

/** The first denial that a real source path is at, inside or above, in words after the path's name. */
export const denialOf = (
  source: string,
  access: Mount['access'],
  denials: readonly Denial[],
): { readonly why: string; readonly isAbove: boolean } | null => {
  for (const denial of denials) {
    const overlap = worst(overlapOf(source, denial.path), overlapOf(source, denial.real))
    const counts = overlap !== 'above' || denial.exists || access === 'write'
    if (overlap === 'apart' || !counts) continue
    const shown = denial.real === denial.path ? denial.path : `${denial.path} (${denial.real})`
    return {
      why: `is ${overlap} ${shown}, ${denial.what}, which no configuration grants`,
      isAbove: overlap === 'above',
    }
  }
  return null
}

const worst = (first: ReturnType<typeof overlapOf>, second: ReturnType<typeof overlapOf>): typeof first =>
  first === 'apart' ? second : first

const judgeRunByHost = (server: string, mount: Mount): void => {
  const protectedName = mount.source.split('/').find(isProtectedName)
  if (protectedName !== undefined)
    throw refused(
      server,
      mount,
      `is writable and lies in or is ${protectedName}, from which the host runs programs`,
      'mount another folder, or make it access: read',
    )
}

const judgeShared = (server: string, mount: Mount, mounts: readonly Mount[]): void => {
  for (const code of mounts) {
    if (code === mount || overlapOf(code.source, mount.source) === 'apart') continue
    const unsafe = unsafeCode[code.origin]
    if (unsafe === null) continue
    throw new SallyportError(
      unsafe,
      `${code.source}, ${code.reason}, shares files with the writable mount of ${mount.source} at ${mount.target} for ${server}; keep code outside of every writable mount`,
      { server, source: code.source, target: code.target, writable: mount.source },
    )
  }
}

// Also those that lie in what the profile reads, whose tree a writable mount may be a part of.
const judgePrograms = (server: string, programs: readonly string[], granted: readonly Mount[]): void => {
  for (const path of programs)
    for (const { source, target } of granted)
      if (isWithin(path, source))
        throw new SallyportError(
          'ERR_COMMAND_UNSAFE',
          `program ${path} of server ${server} lies in the writable mount of ${source} at ${target}; keep programs outside of every writable mount`,
          { server, path, source, target },
        )
}

const unsafeCode: Readonly<Record<Mount['origin'], ErrorCode | null>> = {
  runtime: 'ERR_PACKAGE_UNSAFE',
  profile: null,
  server: null,
  package: 'ERR_PACKAGE_UNSAFE',
  program: 'ERR_COMMAND_UNSAFE',
  protected: null,
  supervisor: null,
}

const refused = (server: string, { source, target }: Placed, what: string, mend: string): SallyportError =>
  new SallyportError('ERR_MOUNT_REFUSED', `mount of ${source} at ${target} for ${server} ${what}; ${mend}`, {
    server,
    source,
    target,
  })
