// The log of daemons in the background, which many open at once as a machine comes up.
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, linkSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
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

/** The pid of a process that is over. */
const over = (): number => spawnSync('true').pid

test.each<[string, (claim: string, path: string) => void, boolean]>([
  ['of a starter that was killed', (claim) => symlinkSync(String(over()), claim), true],
  [
    'of one that was killed as it took another’s over',
    (claim) => {
      const first = over()
      symlinkSync(String(first), claim)
      symlinkSync(String(over()), `${claim}-${first}`)
    },
    true,
  ],
  ['that is a second name of the log', (claim, path) => linkSync(path, claim), true],
  ['of one that is at it', (claim) => symlinkSync(String(process.pid), claim), false],
])(
  'a claim %s keeps a long log from stepping aside: only while its claimer lives',
  (_what, claim, isMoved) => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-log-'))
    try {
      const path = join(folder, 'daemon.log')
      writeFileSync(path, '')
      truncateSync(path, longBytes)
      claim(`${path}.${statSync(path).ino}`, path)
      const log = openLog(path)
      expect(fstatSync(log).size).toBe(isMoved ? 0 : longBytes)
      closeSync(log)
      if (isMoved) expect(readdirSync(folder)).toEqual(['daemon.log', 'daemon.log.1'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)

test('of starts at one instant none fails of it, and what was there is kept', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'daemon.log')
  const dead = over()
  const starters = [1, 2].map(() => fork(script, [path]))
  try {
    for (let round = 0; round < 100; round += 1) {
      rmSync(`${path}.1`, { force: true })
      writeFileSync(path, '')
      truncateSync(path, longBytes)
      if (round % 2 === 1) symlinkSync(String(dead), `${path}.${statSync(path).ino}`) // a starter was killed at it
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
})
