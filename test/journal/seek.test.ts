// What is asked of a long journal is found without reading what lies before and behind it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Journal } from '../../src/journal/journal.ts'
import { type Query, queryJournal } from '../../src/journal/read.ts'
import { listSegments } from '../../src/journal/segments.ts'

const root = mkdtempSync(join(tmpdir(), 'sallyport-seek-'))
const directory = join(root, 'journal')
let last = 0

/** Records of many lengths, some longer than all that is read at once, in batches. */
beforeAll(async () => {
  await using journal = Journal.open({
    directory,
    key: new Uint8Array(32).fill(7),
    daemon: 'd-1',
    durability: 'write',
    segmentBytes: 8_000_000,
    replay: () => undefined,
  })
  for (let batch = 0; batch < 24; batch += 1) {
    const bodies = Array.from({ length: 700 }, (_, n) => (n === 300 ? 400_000 : 40 + ((n * 977) % 1200)))
    const written = bodies.map((bytes) =>
      journal.append({ type: 'test.note', body: JSON.stringify({ text: 'x'.repeat(bytes) }) }),
    )
    await Promise.all(written)
  }
  last = journal.head.seq
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

const find = async (range: Pick<Query, 'after' | 'before' | 'from'>): Promise<readonly number[]> => {
  const query = { ...range, limit: 5, limitBytes: Infinity, matches: () => true }
  return (await queryJournal(directory, query)).records.map(({ seq }) => seq)
}

const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

test.each(['oldest', 'newest'] as const)('every place of it is found, from the %s', async (from) => {
  expect(listSegments(directory).length).toBeGreaterThan(2)
  for (let after = 0; after < last; after += 193) {
    const before = after + 8
    const all = [1, 2, 3, 4, 5, 6, 7].map((n) => after + n).filter((seq) => seq <= last)
    expect(await find({ after, before, from })).toEqual(from === 'oldest' ? all.slice(0, 5) : all.slice(-5))
  }
})

test.each([
  { what: 'what was written last', from: 'oldest', back: 3, most: 150_000 },
  { what: 'one record in the middle', from: 'oldest', back: 8000, most: 3_500_000 },
  { what: 'one record in the middle', from: 'newest', back: 8000, most: 3_500_000 },
  { what: 'the first', from: 'newest', back: 16_000, most: 3_500_000 },
] as const)(
  '$what costs a small part of the reading of all, from the $from',
  async ({ from, back, most }) => {
    const after = last - back
    const before = bytesRead()
    expect(await find({ after, before: after + 2, from })).toEqual([after + 1])
    expect(bytesRead() - before).toBeLessThan(most)
  },
)
