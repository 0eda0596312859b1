// Looking into a journal gives the records that were asked for, in order, from either end and over all segments.
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Journal } from '../../src/journal/journal.ts'
import { type Query, queryJournal } from '../../src/journal/read.ts'
import { segmentPath } from '../../src/journal/segments.ts'

let root: string
let directory: string

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'sallyport-read-'))
  directory = join(root, 'journal')
  await using journal = Journal.open({
    directory,
    key: new Uint8Array(32).fill(7),
    daemon: 'd-1',
    durability: 'write',
    segmentBytes: 4000,
    replay: () => undefined,
  })
  for (let n = 0; n < 60; n += 1)
    // One record is longer than what is read at once
    await journal.append({
      type: 'test.note',
      body: JSON.stringify({ n, text: 'é'.repeat(n === 30 ? 300_000 : 5) }),
    })
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const ask = async (more: Partial<Query>): Promise<readonly unknown[]> => {
  const whole: Query = {
    after: 0,
    before: null,
    limit: 1000,
    limitBytes: Infinity,
    from: 'oldest',
    matches: ({ type }) => type === 'test.note',
    ...more,
  }
  return (await queryJournal(directory, whole)).records.map(({ body }) => (body as { n: number }).n)
}
/** The place just before a note. */
const placeBefore = async (n: number): Promise<number> => {
  const matches: Query['matches'] = ({ body }) => (body as { n?: number }).n === n
  const query: Query = { after: 0, before: null, limit: 1, limitBytes: Infinity, from: 'oldest', matches }
  return ((await queryJournal(directory, query)).records[0]?.seq ?? 0) - 1
}
const upTo = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from }, (_, n) => from + n)

test.each(['oldest', 'newest'] as const)('every record comes once, in order, from the %s', async (from) => {
  expect(await ask({ from })).toEqual(upTo(0, 60))
})

test('the last records are the last ones, oldest first', async () => {
  expect(await ask({ from: 'newest', limit: 3 })).toEqual([57, 58, 59])
  expect(await ask({ from: 'oldest', limit: 3 })).toEqual([0, 1, 2])
})

test('pages follow one another without gap or overlap, in both directions', async () => {
  const whole: Query = {
    after: 0,
    before: null,
    limit: 7,
    limitBytes: Infinity,
    from: 'oldest',
    matches: () => true,
  }
  const seqs: number[] = []
  for (let after = 0; ;) {
    const { records: page } = await queryJournal(directory, { ...whole, after })
    seqs.push(...page.map(({ seq }) => seq))
    const last = page.at(-1)
    if (last === undefined) break
    after = last.seq
  }
  expect(seqs).toEqual(upTo(1, seqs.length + 1))
  const back: number[] = []
  for (let before: number | null = null; ;) {
    const { records: page }: { readonly records: readonly { seq: number }[] } = await queryJournal(
      directory,
      {
        ...whole,
        from: 'newest',
        before,
      },
    )
    back.unshift(...page.map(({ seq }) => seq))
    const [first] = page
    if (first === undefined) break
    before = first.seq
  }
  expect(back).toEqual(seqs)
})

test('an answer is no longer than was asked for, but for one record, and says where it was cut', async () => {
  const whole = {
    after: 0,
    before: null,
    limit: 1000,
    matches: ({ type }: { type: string }) => type === 'test.note',
  }
  for (const from of ['oldest', 'newest'] as const) {
    const found = await queryJournal(directory, { ...whole, from, limitBytes: 1000 })
    expect(found.isCut).toBe(true)
    expect(found.records.length).toBeGreaterThan(1)
    expect(Buffer.byteLength(found.records.map((record) => JSON.stringify(record)).join('\n'))).toBeLessThan(
      1200,
    )
  }
  const long = await queryJournal(directory, {
    ...whole,
    from: 'oldest',
    limitBytes: 1000,
    after: await placeBefore(30),
  })
  expect(long.records.map(({ body }) => (body as { n: number }).n)).toEqual([30])
  expect(
    await queryJournal(directory, { ...whole, from: 'newest', limit: 2, limitBytes: 1000 }),
  ).toMatchObject({
    isCut: false,
  })
})

test('a torn end and a missing journal hide nothing and break nothing', async () => {
  appendFileSync(segmentPath(directory, 1), '{"seq":9999,"at":"20')
  expect(await ask({ from: 'newest', limit: 1 })).toEqual([59])
  expect(
    await queryJournal(join(root, 'none'), {
      after: 0,
      before: null,
      limit: 1,
      limitBytes: Infinity,
      from: 'newest',
      matches: () => true,
    }),
  ).toEqual({ records: [], isCut: false })
})

test.each([
  { from: 'oldest', where: 'behind a whole line', cut: /(?<=\n\{"seq":4).*/s },
  { from: 'newest', where: 'behind a whole line', cut: /(?<=\n\{"seq":4).*/s },
  { from: 'oldest', where: 'before its last newline', cut: /\n$/ },
  { from: 'newest', where: 'before its last newline', cut: /\n$/ },
] as const)(
  'of a batch that was cut off $where nothing is found, and all that took its numbers, from the $from',
  async ({ from, cut }) => {
    const torn = join(root, 'torn')
    const open = (): Journal =>
      Journal.open({
        directory: torn,
        key: new Uint8Array(32).fill(7),
        daemon: 'd-1',
        durability: 'write',
        segmentBytes: 1 << 20,
        replay: () => undefined,
      })
    const append = (journal: Journal, says: string) =>
      journal.append({ type: 'test.note', body: `{"says":"${says}"}` })
    {
      await using journal = open()
      await Promise.all(['cut', 'cut', 'cut'].map((says) => append(journal, says)))
    }
    const path = segmentPath(torn, 1)
    writeFileSync(path, readFileSync(path, 'utf8').replace(cut, ''))
    {
      await using journal = open()
      await append(journal, 'kept')
    }
    const find = async (range: Pick<Query, 'after' | 'before'>) =>
      (await queryJournal(torn, { ...range, limit: 9, limitBytes: Infinity, from, matches: () => true }))
        .records
    const found = (await find({ after: 0, before: null })).map(({ seq, segment }) => ({ seq, segment }))
    expect(found).toEqual([
      { seq: 1, segment: 1 },
      { seq: 2, segment: 2 },
      { seq: 3, segment: 2 },
    ])
    expect(await find({ after: 1, before: 3 })).toMatchObject([{ seq: 2, type: 'segment.opened' }])
  },
)

test.each<[string, (path: string) => void]>([
  ['a link to it', (path) => symlinkSync(`${path}.away`, path)],
  ['a folder', (path) => mkdirSync(path)],
  ['a pipe', (path) => execFileSync('mkfifo', [path])],
])('where %s stands in a segment’s place, that is said by whoever looks into it', async (_, put) => {
  const path = segmentPath(directory, 2)
  renameSync(path, `${path}.away`)
  put(path)
  const found = expect.objectContaining({ code: 'ERR_JOURNAL_CORRUPT', details: { path } })
  await expect(ask({})).rejects.toEqual(found)
  await expect(ask({ from: 'newest' })).rejects.toEqual(found)
  expect(await ask({ from: 'newest', limit: 3 })).toEqual([57, 58, 59])
})
