// Runs a script of ours as an ordinary user, from tests that run as root, wherever the clone lies.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { clonePlace, ordinaryCode } from './probe-folder.ts'
import { ordinaryUid } from './user.ts'

const repository = new URL('../../', import.meta.url).pathname

/**
 * Runs `test/<script>` under Node with the arguments, as the ordinary user, and returns its stdout.
 *
 * A clone below /root is closed to that user, so the clone is bound to a folder that is not, in a mount namespace that ends
 * with the script.
 */
export const asUser = (script: string, ...args: readonly string[]): Promise<string> =>
  runAs(ordinaryUid, [], script, args)

/** The same as a user of whom nobody else is, and who may have no more processes and threads than that. */
export const asPoorUser = (most: number, script: string, ...args: readonly string[]): Promise<string> =>
  runAs(64_123, ['prlimit', `--nproc=${most}:${most}`], script, args)

const runAs = async (
  uid: number,
  under: readonly string[],
  script: string,
  args: readonly string[],
): Promise<string> => {
  const place = clonePlace()
  const folder = place ?? (await mkdtemp(join(tmpdir(), 'sp-user-')))
  const node = process.execPath.startsWith(repository)
    ? join(folder, process.execPath.slice(repository.length))
    : process.execPath
  const drop = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...under]
  const inner = ['mount --bind "$1" "$2" && shift 2 && exec "$@"', 'sh', repository, folder]
  try {
    const { stdout } = await promisify(execFile)(
      'unshare',
      [
        '--mount',
        '--propagation',
        'private',
        'sh',
        '-c',
        ...inner,
        ...drop,
        node,
        join(folder, 'test', script),
        ...args,
      ],
      {
        cwd: '/',
        env: { PATH: process.env['PATH'], HOME: '/nonexistent', ...ordinaryCode() },
        maxBuffer: 1 << 24,
        timeout: 120_000,
      },
    )
    return stdout
  } finally {
    if (place === undefined) await rm(folder, { recursive: true, force: true })
  }
}
