// The process that a sandbox must not find: one of the host's by a number that no sandbox has, also in a container.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { tempDir } from '../../support/temp-dir.ts'
import { patienceMs } from '../../support/patience.ts'

const script = fileURLToPath(new URL('../../support/plant-canaries.ts', import.meta.url))

test('a verification that is PID 1 of a container plants another number than that of every sandbox’s first process', async () => {
  await using home = await tempDir()
  // `unshare` with a mapped user, so that an ordinary one can be PID 1, too.
  const container = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount-proc']
  const { stdout } = await promisify(execFile)(
    'unshare',
    [...container, process.execPath, script, home.path],
    { timeout: patienceMs },
  )
  const found = JSON.parse(stdout) as { self: number; planted: number; isThere: boolean }
  expect(found).toMatchObject({ self: 1, isThere: true })
  expect(found.planted).toBeGreaterThan(1)
})

test.each([
  ['has', 'ip link set lo up', expect.any(Number)],
  ['has not', 'echo 1 >/proc/sys/net/ipv6/conf/lo/disable_ipv6; ip link set lo up', null],
])('what listens on ::1 is planted where a machine %s that address', async (_, setUp, port6) => {
  await using home = await tempDir()
  const ownNetwork = ['--user', '--map-root-user', '--net', 'sh', '-c', `${setUp}; exec "$@"`, 'sh']
  const { stdout } = await promisify(execFile)(
    'unshare',
    [...ownNetwork, process.execPath, script, home.path],
    { timeout: patienceMs },
  )
  expect(JSON.parse(stdout)).toMatchObject({ port6 })
})

test.each([
  [
    '/dev/shm that takes no file',
    '/dev/shm',
    '-o ro',
    /\/dev\/shm: lies on .* read-only; .*mount -t tmpfs[^]*ERR_USAGE/,
  ],
  [
    'temporary folder without room',
    '/tmp',
    '-o size=16k,mode=1777',
    /\/tmp: cannot be written \(ENOSPC\); [^]*ERR_SHORTAGE/,
  ],
])('a %s is named, with what mends it', async (_, folder, how, said) => {
  await using home = await tempDir()
  const mount = `mount -t tmpfs ${how} none ${folder} && mkdir -p "$2" && exec "$0" "$1" "$2"`
  const ownMounts = ['--user', '--map-root-user', '--mount', 'sh', '-c', mount]
  const planted = promisify(execFile)('unshare', [...ownMounts, process.execPath, script, home.path], {
    env: { ...process.env, TMPDIR: '/tmp' },
    timeout: patienceMs,
  })
  await expect(planted.then(null, ({ stderr }: { stderr: string }) => stderr)).resolves.toMatch(said)
})
