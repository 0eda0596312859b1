// Who runs us and with which variables: the one place where the process's own environment is read for configuration.
import { userInfo } from 'node:os'

/** What configuration depends on beside files. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Home folder of the user, absolute */
  readonly home: string
  readonly uid: number
}

/** Describes this process. The home is $HOME where that is absolute, else what the user database says. */
export function thisHost(): Host {
  const env = process.env
  return {
    env,
    home: env['HOME']?.startsWith('/') === true ? env['HOME'] : databaseHome(),
    uid: process.getuid?.() ?? 0,
  }
}

/** A uid without an entry has no home; nothing of ours is there then. */
function databaseHome(): string {
  try {
    return userInfo().homedir
  } catch {
    return '/nonexistent'
  }
}
