// Telling "it is not there" from every other way in which the file system can fail.
import { readFileSync } from 'node:fs'

/** Returns the errno name of what a file-system call threw, or null where it was something else. */
export const errnoOf = (thrown: unknown): string | null =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : null

/** Says whether a file-system call failed because the path, or a folder of it, does not exist. */
export const isMissing = (thrown: unknown): boolean => {
  const code = errnoOf(thrown)
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** Returns a file's text, empty where there is no such file; throws what reading it throws otherwise. */
export const textIfThere = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return ''
    throw error
  }
}

const shortages: ReadonlySet<string | null> = new Set([
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'EAGAIN',
  'ENOSPC',
  'EDQUOT',
  // A file would outgrow what files of ours may have (`ulimit -f`)
  'EFBIG',
  // Node's, for a thread that there was no descriptor or memory for; the errno stands in its message only
  'ERR_WORKER_INIT_FAILED',
  // Node's, for a module that there was no descriptor to load with: a package.json that can't be read on the way to it
  'ERR_INVALID_PACKAGE_CONFIG',
])

const inWords: ReadonlyMap<string, string> = new Map([
  ['Too many open files in system', 'ENFILE'],
  ['Too many open files', 'EMFILE'],
  ['Cannot allocate memory', 'ENOMEM'],
  ['Resource temporarily unavailable', 'EAGAIN'],
])

/** The shortage that another program tells of in the C library's words, as Node would throw it; undefined where it tells of something else. */
export const shortageTold = (line: string): Error | undefined => {
  const [, code] = [...inWords].find(([words]) => line.includes(words)) ?? []
  return code === undefined ? undefined : Object.assign(new Error(line), { code })
}

/** Says whether something failed, itself or in its causes, because the machine was short of descriptors, memory, processes or room. */
export const isShortage = (thrown: unknown): boolean =>
  shortages.has(errnoOf(thrown)) ||
  (thrown instanceof Error && thrown.cause !== undefined && isShortage(thrown.cause))
