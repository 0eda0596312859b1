// Telling "it is not there" from every other way in which the file system can fail.

/** Returns the errno name of what a file-system call threw, or null where it was something else. */
export const errnoOf = (thrown: unknown): string | null =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : null

/** Says whether a file-system call failed because the path, or a folder of it, does not exist. */
export const isMissing = (thrown: unknown): boolean => {
  const code = errnoOf(thrown)
  return code === 'ENOENT' || code === 'ENOTDIR'
}
