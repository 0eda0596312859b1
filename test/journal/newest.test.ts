// Of the journal's end as much is in memory as followers need who are up with it, and never what does not count.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Newest } from '../../src/journal/newest.ts'
import { beginning } from '../../src/journal/segments.ts'
import { Tail } from '../../src/journal/tail.ts'
import { tempDir } from '../support/temp-dir.ts'

const batch = (...lines: readonly string[]): Buffer => Buffer.from(lines.map((line) => `${line}\n`).join(''))
const textsBehind = (newest: Newest, after: number, limitBytes = Infinity): readonly string[] | null =>
  newest.behind(after, limitBytes)?.map(({ text }) => text) ?? null

test('lines are given by their numbers, whole ones up to a length, and at least one', () => {
  const newest = new Newest()
  using _ = newest.follow()
  newest.add(7, batch('eight', 'nüne'))
  newest.add(9, batch('ten'))
  expect(textsBehind(newest, 7)).toEqual(['eight', 'nüne', 'ten'])
  expect(textsBehind(newest, 8)).toEqual(['nüne', 'ten'])
  expect(textsBehind(newest, 8, 7)).toEqual(['nüne'])
  expect(textsBehind(newest, 8, 8)).toEqual(['nüne', 'ten'])
  expect(textsBehind(newest, 7, 1)).toEqual(['eight'])
  expect([textsBehind(newest, 6), textsBehind(newest, 10), textsBehind(newest, 11)]).toEqual([
    null,
    null,
    null,
  ])
})

test('where a batch between is not known, nothing before it is given', () => {
  const newest = new Newest()
  using _ = newest.follow()
  newest.add(1, batch('two'))
  newest.add(3, batch('four'))
  expect(textsBehind(newest, 1)).toBeNull()
  expect(textsBehind(newest, 2)).toBeNull()
  expect(textsBehind(newest, 3)).toEqual(['four'])
})

test('no more is kept than a mebibyte, and nothing without followers', () => {
  const newest = new Newest()
  newest.add(0, batch('one'))
  expect(textsBehind(newest, 0)).toBeNull()
  {
    using _ = newest.follow()
    for (let n = 0; n < 30; n += 1) newest.add(n, batch('x'.repeat(100_000)))
    expect(textsBehind(newest, 19)).toBeNull()
    expect(textsBehind(newest, 20)).toHaveLength(10)
    newest.add(30, batch('x'.repeat(2_000_000)))
    expect(textsBehind(newest, 30)).toBeNull()
    newest.add(31, batch('next'))
    expect(textsBehind(newest, 31)).toEqual(['next'])
  }
  expect(textsBehind(newest, 31)).toBeNull()
})

test('what is written is there once it is kept, and what was taken back never', async () => {
  await using dir = await tempDir()
  const directory = join(dir.path, 'journal')
  mkdirSync(directory)
  const options = { directory, key: new Uint8Array(32), daemon: 'd-1', segmentBytes: 1 << 20 }
  const tail = new Tail({ ...options, durability: 'fsync' }, beginning, null)
  using _ = tail.newest.follow()
  const write = (says: string): void => tail.write([{ type: 'test.note', body: `{"says":"${says}"}` }])
  tail.write([])
  tail.keep()
  write('kept')
  expect(textsBehind(tail.newest, 1)).toBeNull()
  tail.keep()
  expect(textsBehind(tail.newest, 0)).toEqual([
    expect.stringContaining('"segment.opened"'),
    expect.stringContaining('"kept"'),
  ])
  write('taken back')
  tail.takeBack()
  tail.write([])
  tail.keep()
  expect(textsBehind(tail.newest, 2)).toBeNull()
  write('after')
  tail.keep()
  expect(textsBehind(tail.newest, 1)).toEqual([
    expect.stringContaining('"kept"'),
    expect.stringContaining('"after"'),
  ])
  tail.close()
})
