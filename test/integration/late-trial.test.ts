// A machine that is busy as a daemon starts on it: bubblewrap hangs the first time.
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, fixture, main, place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { textOf } from '../support/plan.ts'
import { isRoot } from '../support/user.ts'

// As root: whoever mounts another bubblewrap in the place of this machine's.
test.runIf(isRoot)(
  'a daemon that meets a late trial of the sandbox tries it once more, and starts',
  async () => {
    await using at = await place(configOf({ echo: fixture('echo') }))
    const slow = join(at.folder, 'slow')
    const text = `#!/bin/sh
if [ "$1" != --version ] && mkdir /mnt/marks/first 2>/dev/null; then exec sleep 987652; fi
exec /mnt/bwrap "$@"
`
    await writeFile(slow, text, { mode: 0o755 })
    // Where the launcher mounts nothing, as it does on /tmp
    const script = `mount -t tmpfs -o mode=755 none /mnt && cp /usr/bin/bwrap /mnt && mkdir -m 777 /mnt/marks &&
mount --bind "$1" /usr/bin/bwrap && shift && exec "$@"`
    const argv = ['--mount', '--propagation', 'private', '/bin/sh', '-c', script, 'sh', slow]
    const child = spawn('unshare', [...argv, process.execPath, main, 'serve'], {
      env: at.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const said = textOf(child.stderr)
    try {
      const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
      const operator = await eventually(async () =>
        hasEnded() ? said : at.connect('operator').catch(() => null),
      )
      if (typeof operator === 'string') throw new Error(`serve ended: ${operator}`)
      await using client = operator
      expect(await client.call('tools/call', { server: 'echo', tool: 'echo', arguments: {} })).toMatchObject({
        type: 'output',
      })
    } finally {
      child.kill('SIGTERM')
      await said
    }
  },
)
