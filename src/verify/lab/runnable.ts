// Where the probes' program is put so that any user of the host may execute it: not everything that holds temporary files lets programs run.
import { accessSync, constants } from 'node:fs'
import { access, chmod, copyFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { errnoOf } from '../../lib/missing.ts'
import { findProbesBinary } from '../../sandbox/init-binary.ts'

/**
 * Folders for temporary files that take some, of which the first may be on a file system that is mounted noexec, as hardened machines
 * have it. Of one with a space in its path nothing can be the interpreter that the first line of a script names.
 */
export const parents = (): readonly string[] =>
  [...new Set([tmpdir(), '/var/tmp'])].filter((folder) => !/\s/.test(folder) && takesFiles(folder))

function takesFiles(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Copies the program into the first of the folders in which it may be executed, and returns its path. `folderIn` gives the folder
 * below each of `parents`. Throws ERR_USAGE where there is none.
 */
export const placeProgram = async (folderIn: (parent: string) => Promise<string>): Promise<string> => {
  const probes = await findProbesBinary()
  for (const parent of parents()) {
    const program = join(await folderIn(parent), 'sallyport-probes')
    await copyFile(probes, program)
    await chmod(program, 0o755)
    if (await mayBeExecuted(program)) return program
  }
  throw new SallyportError(
    'ERR_USAGE',
    `no program can be executed in ${parents().join(' or ') || tmpdir()}: mounted noexec, or with a space in its path; one is put there for this, so set TMPDIR to a folder in which programs may run`,
  )
}

// access(2) says EACCES of an executable file where the mount is noexec.
const mayBeExecuted = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    (error: unknown) => {
      if (errnoOf(error) === 'EACCES') return false
      throw error
    },
  )
