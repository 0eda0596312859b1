// A run that is broken off, as by Ctrl-C or the end of a job, at its beginning and amid the storm.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { processesWith } from '../support/leaks.ts'
import { tempDir } from '../support/temp-dir.ts'

const chaos = fileURLToPath(new URL('chaos.ts', import.meta.url))

test.for([
  ['SIGINT', 'as its daemon starts', /with(out)? containers/],
  ['SIGTERM', 'amid the storm', /^ *\d+\.\d {2}(?!with|no time).*: /],
] as const)('a run that %s ends %s leaves nothing', async ([signal, , moment]) => {
  await using folder = await tempDir()
  const args = [chaos, '--seconds', '60', '--seed', '1']
  const run = spawn(process.execPath, args, {
    env: { ...process.env, TMPDIR: folder.path },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(run, 'exit')
  for await (const line of createInterface({ input: run.stdout })) if (moment.test(line)) run.kill(signal)
  expect(await exited).toEqual([130, null])
  expect(processesWith(`${folder.path}/`)).toEqual([])
  expect(await readdir(folder.path)).toEqual([])
})

test('a signal while all is undone waits for the end of that', async () => {
  const module = new URL('../support/broken-off.ts', import.meta.url).href
  const script = `
    import { setTimeout as delay } from 'node:timers/promises'
    import { Undoing } from ${JSON.stringify(module)}
    await using undoing = new Undoing()
    undoing.defer(async () => {
      console.log('undoing')
      await delay(500)
      console.log('undone')
    })`
  const run = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(run, 'exit')
  const said: string[] = []
  for await (const line of createInterface({ input: run.stdout })) {
    said.push(line)
    if (line === 'undoing') run.kill('SIGTERM')
  }
  expect(await exited).toEqual([130, null])
  expect(said).toEqual(['undoing', 'undone'])
})
