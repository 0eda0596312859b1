// `sallyport serve --background` where another daemon has the folder, and does not answer yet.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

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
  90_000,
)
