// The folders that a person's variables name and that a verification, or learning, makes its own in.
import { mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Named, onNamed } from '../../config/named-file.ts'

/** The home or the temporary folder, as what is said where it takes nothing. */
export const ground = (path: string, access: Named['access']): Named => ({
  path,
  access,
  code: 'ERR_USAGE',
  mend: `files are made there for this, so set ${path === tmpdir() ? 'TMPDIR' : 'HOME'} to a folder that is there and that this user can write to`,
})

/** Makes a folder of that beginning in the temporary one. Throws ERR_USAGE where that takes none. */
export const temporary = async (begin: string): Promise<string> => {
  const parent = await onNamed(ground(tmpdir(), 'read'), () => realpath(tmpdir()))
  return onNamed(ground(tmpdir(), 'write'), () => mkdtemp(join(parent, begin)))
}
