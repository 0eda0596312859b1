// The group of an account: what a program that runs as it belongs to.
import { readFileSync } from 'node:fs'
import { isMissing } from './missing.ts'

/**
 * Gid of a uid's primary group, as the machine's own files have it; for a uid that has no account there, the same number.
 * Null where that is the number of a group: who is in that was never asked about this uid.
 */
export const accountGroup = (uid: number, etc = '/etc'): number | null => {
  const account = fieldsOf(`${etc}/passwd`).find(([, , id]) => id === String(uid))
  if (account !== undefined) return Number(account[3])
  return fieldsOf(`${etc}/group`).some(([, , id]) => id === String(uid)) ? null : uid
}

/** The fields of each line; a file that is not there knows nobody. */
const fieldsOf = (path: string): readonly (readonly string[])[] => {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .map((line) => line.split(':'))
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}
