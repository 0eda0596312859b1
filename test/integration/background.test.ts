// `sallyport serve --background` where another daemon has the folder, and does not answer yet.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { main, place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'
import { isRoot } from '../support/user.ts'

it.each(['run-too', 'run\ttoo'])(
  'waits for whoever has the lock of %j, who answers in the end',
  async (name) => {
    await using at = await place()
    const [runtime, state] = [join(at.folder, name), join(at.folder, 'state')]
    await mkdir(runtime, { mode: 0o711 })
    const lock = join(runtime, 'daemon.lock')
    await writeFile(lock, '', { mode: 0o600 })
    const holder = spawn('flock', ['--no-fork', lock, 'cat'], { stdio: ['pipe', 'pipe', 'inherit'] })
    // What it repeats is said once it has the lock.
    holder.stdin.write('held')
    await once(holder.stdout, 'data')

    const starting = at.start(['serve', '--background', '--runtime', runtime, '--state', state])
    const ended = once(starting, 'exit')
    await eventually(async () =>
      (await readFile(join(state, 'daemon.log'), 'utf8')).includes('ERR_DAEMON_RUNNING'),
    )
    holder.stdin.end()
    await once(holder, 'exit')
    at.start(['serve', '--runtime', runtime, '--state', state])
    expect(await ended).toEqual([0, null])
  },
)

it('ends a daemon that hangs before its first word, and says what may be the matter', async () => {
  await using at = await place()
  const hang = join(at.folder, 'hang.mjs')
  const wait = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'
  await writeFile(hang, `if (!process.argv.includes('--background')) ${wait}\n`)
  const starting = at.start(['serve', '--background'], { NODE_OPTIONS: `--import=${hang}` })
  let said = ''
  starting.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const [status] = (await once(starting, 'close')) as [number]
  expect([status, said]).toEqual([
    5,
    expect.stringContaining(
      'the daemon did not start: it said nothing, as where memory or processes run out;',
    ),
  ])
  await eventually(() => processesWith(at.runtimeDir).length === 0)
})

const longBytes = 8 * 1024 * 1024

it.each<[string, (log: string) => unknown, string]>([
  ['is a folder', (log) => mkdir(log), 'daemon.log: is a folder'],
  ['leads nowhere', (log) => symlink('/nowhere/at/all', log), 'daemon.log: its folder is not there'],
  [
    'is to step aside to where a folder is',
    async (log) => {
      await mkdir(`${log}.1`)
      await writeFile(log, '')
      await truncate(log, longBytes)
    },
    'daemon.log: is a folder',
  ],
])('says of a log that %s what is to be done about it', async (_what, make, words) => {
  await using at = await place()
  await mkdir(at.stateDir, { mode: 0o700 })
  await make(join(at.stateDir, 'daemon.log'))
  const { status, stderr } = await at.run(['serve', '--background'])
  expect(stderr).toContain(words)
  expect(stderr).toContain('move what is there, or choose another folder with --state (ERR_RUNTIME_UNSAFE)')
  expect(stderr.trim().split('\n')).toHaveLength(1)
  expect(status).toBe(7)
})

it.runIf(isRoot)('says that the disk is full where the log takes no word of the daemon', async () => {
  await using at = await place()
  await mkdir(at.stateDir, { mode: 0o700 })
  const script = `mount -t tmpfs -o size=65536,mode=700 tmpfs "$1" || exit 99
    : > "$1/daemon.log"; cat /dev/zero > "$1/filler" 2>/dev/null; shift; exec "$@"`
  const namespace = ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', at.stateDir]
  const args = [...namespace, process.execPath, main, 'serve', '--background']
  const { status, stderr } = spawnSync('unshare', args, { env: at.env, cwd: at.folder, encoding: 'utf8' })
  expect(stderr).toMatch(/daemon\.log: cannot be written \(ENOSPC\); .*\(ERR_SHORTAGE\)\n$/)
  expect(status).toBe(1)
})
