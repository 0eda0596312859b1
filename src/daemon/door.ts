// What stands at the daemon's door: the record of who answers, and the watch that the door is still ours.
import { lstat, rename, writeFile } from 'node:fs/promises'
import { SallyportError } from '../errors.ts'
import type { Logger } from '../lib/logger.ts'
import { dial } from '../rpc/dial.ts'
import { runtimePaths } from '../rpc/runtime-dir.ts'

const watchMs = 2000

/** Replaces the record of who answers here, whole or not at all. */
export async function writeRecord(path: string, record: object): Promise<void> {
  await writeFile(`${path}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 })
  await rename(`${path}.new`, path)
}

/** Tells, within two seconds, that the socket at `path` is not the one that was there. */
export async function watchDoor(
  path: string,
  log: Logger,
  onLost: (error: SallyportError) => void,
): Promise<NodeJS.Timeout> {
  const { ino } = await lstat(path)
  const look = async (): Promise<void> => {
    const found = await lstat(path).catch(() => null)
    if (found?.ino === ino) return
    log.error({ path }, 'socket was removed or replaced, standing down')
    onLost(
      new SallyportError(
        'ERR_DAEMON_UNAVAILABLE',
        `${path} was removed or replaced, so nobody can reach this daemon`,
      ),
    )
  }
  return setInterval(() => void look(), watchMs).unref()
}

/** Whether a daemon answers at the door of a runtime directory. */
export async function answers(directory: string): Promise<boolean> {
  try {
    await using _caller = await dial(runtimePaths(directory).hostSocket)
    return true
  } catch (error) {
    return error instanceof SallyportError && error.code !== 'ERR_DAEMON_UNAVAILABLE'
  }
}

/** The path as the guard takes it. */
export function asAbsolute(path: string): `/${string}` {
  return `/${path.replace(/^\/+/, '')}`
}
