// A run of scale that is broken off as its daemon starts, and amid its steps.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'
import { tempDir } from '../support/temp-dir.ts'

const scale = fileURLToPath(new URL('scale.ts', import.meta.url))

test.for([
  ['SIGTERM', 'before its daemon is up', (folder: string) => readdirSync(folder).length > 0],
  ['SIGINT', 'amid its steps', (folder: string) => processesWith(`/hosts\0${folder}/`).length > 0],
] as const)('a run that %s ends %s leaves nothing', async ([signal, , isMoment]) => {
  await using folder = await tempDir()
  const run = spawn(process.execPath, [scale, '--servers', '2', '--hosts', '1', '--seconds', '60'], {
    env: { ...process.env, TMPDIR: folder.path },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  run.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()))
  const exited = once(run, 'close')
  await eventually(() => isMoment(folder.path))
  run.kill(signal)
  expect(await exited).toEqual([130, null])
  expect(said).toBe('')
  expect(processesWith(`${folder.path}/`)).toEqual([])
  expect(readdirSync(folder.path)).toEqual([])
})
