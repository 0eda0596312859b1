// A daemon whose runtime or state folder is on a disk that takes nothing, as one is that the kernel found broken.
import { spawnSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { configOf, main, place } from '../support/daemon.ts'
import { isRoot } from '../support/user.ts'

// An ordinary user's mounts are in a user namespace, where nobody owns what lies above: that is refused first.
test.runIf(isRoot).each([
  ['state', '755', []],
  ['state', '700', []],
  ['state', '700', ['--background']],
  ['runtime', '711', []],
] as const)('a %s folder of mode %s there is refused by name (serve %j)', async (which, mode, more) => {
  await using at = await place(configOf({}))
  const folder = which === 'state' ? at.stateDir : at.runtimeDir
  await mkdir(folder, { recursive: true })
  const script = 'mount -t tmpfs -o "ro,mode=$2" none "$1" && shift 2 && exec "$@"'
  const argv = ['--mount', '--propagation', 'private', '/bin/sh', '-c', script, 'sh', folder, mode]
  const { status, stderr } = spawnSync('unshare', [...argv, process.execPath, main, 'serve', ...more], {
    env: at.env,
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({
    status: 7,
    stderr: expect.stringMatching(
      new RegExp(
        `^sallyport: folder ${folder} is on a file system that is read-only; .*\\(ERR_RUNTIME_UNSAFE\\)\n$`,
      ),
    ) as unknown,
  })
})
