// Whether a group is one user's own: then its permissions are nobody else's.
import { readFile } from 'node:fs/promises'
import { isMissing } from './missing.ts'

/**
 * Says whether a user, and nobody else, is in a group: it is the user's primary group, nobody else's, and lists no other
 * member. Only the machine's own files are asked; a group or a user that they do not have, such as one of a
 * directory service, is no private one.
 */
export async function isPrivateGroup(gid: number, uid: number, etc = '/etc'): Promise<boolean> {
  const [users, groups] = await Promise.all([fieldsOf(`${etc}/passwd`), fieldsOf(`${etc}/group`)])
  const inGroup = users.filter(([, , , primary]) => primary === String(gid))
  const entries = groups.filter(([, , id]) => id === String(gid))
  const names = new Set(inGroup.map(([name]) => name))
  const members = entries.flatMap(([, , , list]) => (list ?? '').split(',')).filter((name) => name !== '')
  return (
    entries.length === 1 &&
    inGroup.length > 0 &&
    inGroup.every(([, , id]) => id === String(uid)) &&
    members.every((name) => names.has(name))
  )
}

/** The fields of each line; a file that is not there knows nobody. */
async function fieldsOf(path: string): Promise<readonly (readonly string[])[]> {
  try {
    const text = await readFile(path, 'utf8')
    return text.split('\n').map((line) => line.split(':'))
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}
