// A file or folder that a person named, and that the system does not give or take: told in words, as what it is to them.
import { enough, type ErrorCode, SallyportError } from '../errors.ts'
import { errnoOf, isShortage } from '../lib/missing.ts'

/** What was named, and what is said where it cannot be had. */
export interface Named {
  readonly path: string
  /** How the message begins; the path unless an option is to be told with it */
  readonly as?: string
  readonly access: 'read' | 'write'
  readonly code: ErrorCode
  /** What to do, in the imperative */
  readonly mend: string
  /** What to do where the name must be new, and is not */
  readonly mendTaken?: string
}

/** What `--out` names. */
export const outFile = (path: string, mend = 'name a file in a folder that you can write'): Named => ({
  path,
  as: `--out ${path}`,
  access: 'write',
  code: 'ERR_USAGE',
  mend,
})

/** Runs what reads or writes it. What the system refuses fails with `code`, or as a shortage; every other failure passes. */
export async function onNamed<T>(named: Named, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    throw refusalOf(error, named) ?? error
  }
}

/** What to say of a failure, or null where the system said nothing about a file. */
export function refusalOf(
  error: unknown,
  { path, as = path, access, code, mend, mendTaken = mend }: Named,
): SallyportError | null {
  const errno = errnoOf(error)
  if (errno === null || error instanceof SallyportError) return null
  const isShort = isShortage(error)
  const help = errno === 'EEXIST' ? mendTaken : mend
  return new SallyportError(
    isShort ? 'ERR_SHORTAGE' : code,
    `${as}: ${troubleOf(errno, access)}; ${isShort ? enough : help}`,
    { file: path, got: errno },
    { cause: error },
  )
}

/** An errno of a file in words. */
export function troubleOf(errno: string, access: Named['access']): string {
  switch (errno) {
    case 'ENOENT':
      return access === 'read' ? 'no such file' : 'its folder is not there'
    case 'ENOTDIR':
      return 'no such file: what its path has for a folder is none'
    case 'EISDIR':
      return 'is a folder'
    case 'EEXIST':
      return 'is there already'
    case 'EACCES':
    case 'EPERM':
      return `uid ${process.geteuid?.()} may not ${access} it (${errno})`
    case 'EROFS':
      return 'lies on a file system that is read-only'
    default:
      return `cannot be ${access === 'read' ? 'read' : 'written'} (${errno})`
  }
}
