// The log of daemons in the background, which many open at once as a machine comes up.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { openLog } from '../../src/cli/daemon-log.ts'
import { tempDir } from '../support/temp-dir.ts'

const longBytes = 8 * 1024 * 1024
const script = fileURLToPath(new URL('apart/open-log.ts', import.meta.url))

test('a log that has become long steps aside, and a short one goes on', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'daemon.log')
  writeFileSync(path, 'short')
  for (const [bytes, left] of [
    [5, 5],
    [longBytes, 0],
  ] as const) {
    truncateSync(path, bytes)
    const log = openLog(path)
    expect(fstatSync(log).size).toBe(left)
    closeSync(log)
  }
  expect(readdirSync(folder.path)).toEqual(['daemon.log', 'daemon.log.1'])
  expect(statSync(`${path}.1`).size).toBe(longBytes)
})

test('of starts at one instant none fails of it, and what was there is kept', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'daemon.log')
  const starters = [1, 2].map(() => fork(script, [path]))
  try {
    for (let round = 0; round < 100; round += 1) {
      rmSync(`${path}.1`, { force: true })
      writeFileSync(path, '')
      truncateSync(path, longBytes)
      const at = Date.now() + 5
      const said = starters.map(async (starter) => {
        const word = once(starter, 'message')
        starter.send(at)
        return ((await word) as unknown[])[0]
      })
      expect(await Promise.all(said)).toEqual(['opened', 'opened'])
      expect(statSync(`${path}.1`).size).toBe(longBytes)
    }
    expect(readdirSync(folder.path)).toEqual(['daemon.log', 'daemon.log.1'])
  } finally {
    for (const starter of starters) starter.kill()
  }
}, 60_000)
