// Which file a process runs, and which one the plan says: what no process can choose to look like.
import { lstatSync, openSync, readlinkSync, readSync, closeSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { isWithin } from '../../lib/path-overlap.ts'
import { readShebang } from '../../sandbox/program/shebang.ts'
import { mountsOf, type SandboxSpec } from '../../sandbox/spec.ts'

/** A file by what the kernel knows it by. */
export interface FileIdentity {
  readonly dev: bigint
  readonly ino: bigint
}

/** The file that a process executes. */
export interface Running extends FileIdentity {
  /** Where it is in the sandbox, as the kernel tells it */
  readonly path: string
}

export const isSameFile = (one: FileIdentity, other: FileIdentity): boolean =>
  one.dev === other.dev && one.ino === other.ino

/** What a process executes now, whatever it calls itself. Throws the errno where it may not be looked at. */
export const runningIn = (pid: number): Running => {
  const path = readlinkSync(`/proc/${pid}/exe`)
  const { dev, ino } = statSync(`/proc/${pid}/exe`, { bigint: true })
  return { path, dev, ino }
}

/**
 * Returns the files that a launch of the plan may run as its server: the host's, where one is mounted at the program's path; else
 * the image's, as the server's own root has it, and of a script there what its first line names. None where there is no such file.
 */
export const plannedPrograms = (
  { program: { path }, environment, ...spec }: SandboxSpec,
  pid: number,
): readonly FileIdentity[] => {
  const mount = mountsOf(spec).findLast(({ target }) => isWithin(path, target))
  if (mount !== undefined) return identityOf(join(mount.source, relative(mount.target, path)))
  const root = `/proc/${pid}/root`
  const file = followIn(root, path)
  if (file === null) return []
  const line = readShebang(headOf(file))
  if (line === null || typeof line === 'string') return identityOf(file)
  const { interpreter } = line
  const folders = (environment['PATH']?.value ?? '').split(':')
  const candidates = interpreter.startsWith('/')
    ? [interpreter]
    : folders.map((folder) => join(folder, interpreter))
  return candidates.flatMap((candidate) => identityOf(followIn(root, candidate))).slice(0, 1)
}

const identityOf = (path: string | null): readonly FileIdentity[] => {
  const found = path === null ? undefined : statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? [] : [{ dev: found.dev, ino: found.ino }]
}

/** As many links as the kernel follows in one path */
const mostLinks = 40

/** Follows a path by hand, so that a link of the sandbox leads nowhere but in its root; null where there is nothing. */
const followIn = (root: string, path: string): string | null => {
  let rest = path.split('/')
  let at = '/'
  for (let links = 0; rest.length > 0;) {
    const [name = '', ...more] = rest
    rest = more
    const next = join(at, name)
    const status = lstatSync(root + next, { throwIfNoEntry: false })
    if (status === undefined) return null
    if (!status.isSymbolicLink()) at = next
    else if (++links > mostLinks) return null
    else {
      const text = readlinkSync(root + next)
      at = text.startsWith('/') ? '/' : dirname(next)
      rest = [...text.split('/'), ...rest]
    }
  }
  return root + at
}

const headOf = (path: string): Buffer => {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(256)
    return head.subarray(0, readSync(file, head))
  } finally {
    closeSync(file)
  }
}
