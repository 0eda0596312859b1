// An ordinary user beside root, and programs run as that user.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { patienceMs } from './patience.ts'

/** Uid and gid of `nobody`, who owns nothing. */
export const nobody = 65_534

/** A uid that owns nothing on any machine. */
export const ordinaryUid = 47_891

/** True where tests may become another user. */
export const isRoot = process.getuid?.() === 0

/** Runs Node code as another user, with an empty environment, and gives what it printed. */
export async function nodeAs(uid: number, code: string): Promise<string> {
  const args = [...ids(uid), process.execPath, '--input-type=module', '-e', code]
  const { stdout } = await promisify(execFile)('setpriv', args, { env: {}, timeout: patienceMs })
  return stdout
}

const ids = (uid: number): string[] => ['--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups']
