// A secret that a program prints.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { unlessAborted } from '../../lib/deadline.ts'
import { followTrusted } from '../../lib/trusted-path.ts'
import { sourceFailed } from './failure.ts'
import { sourceLimit } from './file.ts'
import { onThread } from './threads.ts'

/** Who runs commands where the daemon is root: `nobody`, who owns nothing */
const nobody = 65_534

/**
 * Runs the program and returns what it printed.
 *
 * No shell, an empty environment, `/` as its folder, no input, a process group of its own that is killed when it ends,
 * prints too much or is late, or the daemon is killed (sandbox/init/kept.c), so that nothing of it stays. Never root: a root daemon
 * runs it as `nobody`, without groups.
 * What it says on stderr is thrown away, since it may hold the secret.
 */
export const runForSecret = async (
  credential: string,
  argv: readonly string[],
  { uid, initPath }: { readonly uid: number; readonly initPath: string },
  signal: AbortSignal,
): Promise<Buffer> => {
  const [program = '', ...args] = argv
  const failed = (fault: string): Error => sourceFailed(credential, `command ${program} ${fault}`)
  if (!isAbsolute(program)) throw failed('is no absolute path')
  const following = onThread(program, signal, () => followTrusted(program, [uid]))
  const place = await unlessAborted(following, signal).catch(() => {
    throw failed(signal.aborted ? 'was not found in time: what it is on may hang' : 'was not found')
  })
  if (!place.isTrusted)
    throw failed(`is not safe: ${place.distrust.place} ${place.distrust.what}; ${place.distrust.mend}`)
  if ((place.found.mode & 0o6000n) !== 0n) throw failed('has a setuid or setgid bit')
  if (signal.aborted) throw failed('was not run in time')

  const unstarted = (error: NodeJS.ErrnoException): Error =>
    failed(`could not be run: ${error.code ?? 'unknown'}`)
  // By its descriptor: nobody can't search every folder above it, such as root's home.
  await using keeper = await open(initPath).catch((error: NodeJS.ErrnoException) => {
    throw unstarted(error)
  })
  // The path as it was written: programs that are links look at their name, and every step to it was judged
  const child = spawn('/proc/self/fd/3', ['kept', `${process.pid}`, program, ...args], {
    argv0: 'sallyport-init',
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'ignore', keeper.fd],
    detached: true,
    ...(uid === 0 ? { uid: nobody, gid: nobody } : {}),
  })
  // Without a descriptor to spare it has no streams either.
  const { pid, stdout } = child
  if (pid === undefined || stdout === null) throw unstarted((await once(child, 'error'))[0] as Error)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const parts: Buffer[] = []
  let length = 0
  const late = (): void => reject(failed('did not end in time'))
  signal.addEventListener('abort', late, { once: true })
  child.on('error', (error) => reject(unstarted(error)))
  stdout.on('data', (part: Buffer) => {
    parts.push(part)
    length += part.length
    if (length > sourceLimit) reject(failed(`printed more than ${sourceLimit} bytes`))
  })
  child.on('close', (status, by) => {
    if (status === 0) resolve(Buffer.concat(parts))
    else
      reject(failed(by === null ? `ended with status ${status}${unexecuted(status)}` : `was ended by ${by}`))
  })
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', late)
    killGroup(pid)
    stdout.destroy()
    for (const part of parts) part.fill(0)
  }
}

/** What the keeper's own statuses say, which a program may have, too (sandbox/README.md). */
const unexecuted = (status: number | null): string =>
  ({ 126: ', as where it may not be executed', 127: ', as where what it is to be run by is not there' })[
    status ?? 0
  ] ?? ''

const killGroup = (group: number): void => {
  try {
    process.kill(-group, 'SIGKILL')
  } catch {
    // nothing of the group is left
  }
}
