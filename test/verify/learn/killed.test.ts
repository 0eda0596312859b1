// A learning that is killed: no copy of what a person named, no sandbox and no control group outlives it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { cgroupsOf, processesWith } from '../../support/leaks.ts'
import { openPackage } from '../../support/learning.ts'

const cli = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'a learning that is ended by %s leaves nothing behind',
  async (signal) => {
    await using at = await openPackage('needs.mjs')
    await writeFile(join(at.data, 'private.txt'), 'a person’s')
    const [tmp, home] = [join(at.path, 'tmp'), join(at.path, 'home')]
    for (const folder of [tmp, home]) await mkdir(folder)
    const options = ['--write', at.data, '--out', join(at.path, 'draft.yaml')]
    const child = spawn(
      process.execPath,
      [cli, 'profile', 'learn', ...options, '--', process.execPath, at.server],
      {
        env: { PATH: process.env['PATH'], HOME: home, TMPDIR: tmp },
        stdio: 'ignore',
      },
    )
    const exit = once(child, 'exit')
    const named = (start: string): readonly string[] =>
      readdirSync(tmp).filter((name) => name.startsWith(start))
    await eventually(() => named('sp-copies-').length > 0 && processesWith(at.server).length > 1)
    const [own = ''] = named('sp-learn-')
    const [record = ''] = readdirSync(join(tmp, own, 'daemons'))
    expect(record).toMatch(/^d-.*\.json$/)
    child.kill(signal)
    await exit
    await eventually(() => readdirSync(tmp).length === 0)
    await eventually(() => cgroupsOf(record.replace('.json', '')).length === 0)
    await eventually(() => processesWith(at.server).length === 0)
  },
)
