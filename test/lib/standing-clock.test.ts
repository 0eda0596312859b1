// A wall clock is gone by where it said the same half an hour ago, and nowhere else.
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { timeThatStands } from '../../src/lib/standing-clock.ts'
import { clockStood } from '../support/clock-stood.ts'
import { tempDir } from '../support/temp-dir.ts'

const [hourMs, yearMs] = [3_600_000, 365 * 86_400_000]
let path = ''
beforeEach(async () => {
  const folder = await tempDir()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  path = join(folder.path, 'clock')
})

test('nobody goes by one that was never seen, and its note is its owner’s alone', async () => {
  expect(await timeThatStands(path)).toBeNull()
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(await timeThatStands(path)).toBeNull()
})

test('one that has stood for half an hour is gone by, one that has for less is not', async () => {
  clockStood(path, { agoMs: 1_500_000 })
  expect(await timeThatStands(path)).toBeNull()
  clockStood(path, { agoMs: 1_810_000 })
  const before = Date.now()
  expect(await timeThatStands(path)).toBeGreaterThanOrEqual(before)
})

test.each([
  ['was put ahead', -yearMs],
  ['was put back', yearMs],
])('one that %s since has to stand anew, and so has the right one after it', async (_, aheadMs) => {
  clockStood(path, { aheadMs })
  const noted = readFileSync(path, 'utf8')
  expect(await timeThatStands(path)).toBeNull()
  expect(readFileSync(path, 'utf8')).not.toBe(noted)
  expect(await timeThatStands(path)).toBeNull()
})

test('one that is put right bit by bit stands', async () => {
  clockStood(path, { aheadMs: 60_000 })
  expect(await timeThatStands(path)).not.toBeNull()
})

test('what was noted in another boot, of a time to come, or by halves, counts for nothing', async () => {
  clockStood(path)
  const noted = readFileSync(path, 'utf8')
  const seen = JSON.parse(noted)
  const others = [
    { ...seen, boot: 'another' },
    { ...seen, sinceMs: uptime() * 1000 + hourMs },
    { boot: seen.boot },
  ]
  for (const text of [...others.map((other) => JSON.stringify(other)), noted.slice(0, -9), 'null', '']) {
    writeFileSync(path, text)
    expect(await timeThatStands(path), text).toBeNull()
  }
})
