// What a loss of power leaves behind the last seal keeps no start from going on, and hides nothing that had counted.
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { headPath } from '../../src/journal/head-file.ts'
import { Journal } from '../../src/journal/journal.ts'
import { queryJournal } from '../../src/journal/read.ts'
import type { JournalRecord, Position } from '../../src/journal/record.ts'
import { seal } from '../../src/journal/sealed.ts'
import { segmentPath } from '../../src/journal/segments.ts'
import { verifyJournal } from '../../src/journal/verify.ts'

const key = new Uint8Array(32).fill(7)
const pageBytes = 4096
let root: string
let directory: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sallyport-journal-'))
  directory = join(root, 'journal')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const pathOf = (segment: number): string => segmentPath(directory, segment)
const open = (seen: JournalRecord[] = []): Journal =>
  Journal.open({
    directory,
    key,
    daemon: 'd-1',
    durability: 'fsync',
    segmentBytes: 1 << 20,
    replay: (record) => seen.push(record),
  })

/** Opens the journal once more and adds a note; the notes that it found. */
async function again(n: number): Promise<readonly unknown[]> {
  const seen: JournalRecord[] = []
  await using journal = open(seen)
  await journal.append({ type: 'test.note', body: JSON.stringify({ n }) })
  return notesIn(seen)
}

const notesIn = (records: readonly JournalRecord[]): readonly unknown[] =>
  records.filter(({ type }) => type === 'test.note').map(({ body }) => (body as { n: unknown }).n)

interface Written {
  /** Where the last batch begins */
  readonly sealed: number
  readonly before: Position
  readonly after: Position
}

/** A note, and a batch of 21 KB: ten notes with numbers of more than one digit. */
async function written(): Promise<Written> {
  await using journal = open()
  await journal.append({ type: 'test.note', body: '{"n":1}' })
  const [before, sealed] = [journal.head, readFileSync(pathOf(1)).length]
  const text = 'x'.repeat(2000)
  await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      journal.append({ type: 'test.note', body: JSON.stringify({ n: 10 + n, text }) }),
    ),
  )
  return { sealed, before, after: journal.head }
}

/** The page that begins there was never written. */
function zero(segment: number, from: number): void {
  const bytes = readFileSync(pathOf(segment))
  writeFileSync(pathOf(segment), bytes.fill(0, from, Math.min(from + pageBytes, bytes.length)))
}

const writeHead = ({ seq, hash }: Position): void =>
  writeFileSync(headPath(directory), seal('head', `"seq":${seq},"hash":"${hash}"`, key))

const query = async (more: object): Promise<readonly unknown[]> => {
  const usual = { after: 0, before: null, limit: 99, limitBytes: Infinity, matches: () => true } as const
  return notesIn((await queryJournal(directory, { ...usual, from: 'oldest', ...more })).records)
}

test.each([0, 1, 2, 3, 4, 5])(
  'a hole in the last batch, page %d, is kept, told of, and never part of the chain',
  async (page) => {
    const { sealed, before } = await written()
    zero(1, sealed + page * pageBytes)
    writeHead(before)
    const damaged = readFileSync(pathOf(1))
    const torn = [{ segment: 1, offset: sealed, bytes: damaged.length - sealed }]
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, torn, head: before })
    expect(await again(2)).toEqual([1])
    expect(await again(3)).toEqual([1, 2])
    expect(readFileSync(pathOf(1)).equals(damaged)).toBe(true)
    for (const known of [key, null])
      expect(verifyJournal(directory, known)).toMatchObject({ ok: true, torn, segments: 3 })
    const [header = ''] = readFileSync(pathOf(2), 'utf8').split('\n')
    expect(JSON.parse(header)).toMatchObject({ type: 'segment.opened', body: { torn: torn[0] } })
    for (const from of ['oldest', 'newest'] as const) {
      expect(await query({ from })).toEqual([1, 2, 3])
      expect(await query({ from, before: before.seq + 3 })).toEqual([1, 2])
      expect(await query({ from, after: before.seq })).toEqual([2, 3])
    }
  },
)

test.each([
  ['no text', Buffer.from([0xff, 0xfe, 10, 0, 0, 10])],
  ['pages of nothing', Buffer.alloc(2 * pageBytes)],
  ['lines of nothing', Buffer.alloc(300, 10)],
])('%s behind the last seal keeps no start from going on', async (_, bytes) => {
  const { after } = await written()
  writeHead(after)
  appendFileSync(pathOf(1), bytes)
  expect(await again(2)).toHaveLength(11)
  expect(await again(3)).toHaveLength(12)
  expect(verifyJournal(directory, key)).toMatchObject({ ok: true, torn: [{ bytes: bytes.length }] })
})

test('a second loss of power, in the first record of what went on, keeps none from it either', async () => {
  const { sealed, before } = await written()
  zero(1, sealed)
  await again(2)
  writeFileSync(pathOf(2), Buffer.alloc(pageBytes))
  expect(await again(2)).toEqual([1])
  expect(await again(3)).toEqual([1, 2])
  const torn = [
    { segment: 1, offset: sealed },
    { segment: 2, offset: 0 },
  ]
  expect(verifyJournal(directory, key)).toMatchObject({ ok: true, torn })
  expect(await query({ after: before.seq })).toEqual([2, 3])
})

describe('what had counted is refused all the same, where it is damaged', () => {
  const refused = expect.objectContaining({ code: 'ERR_JOURNAL_CORRUPT' })

  test('and the head file knows of it', async () => {
    const { sealed, after } = await written()
    zero(1, sealed + pageBytes)
    writeHead(after)
    expect(() => open()).toThrow(refused)
    expect(verifyJournal(directory, key).flaw).toMatchObject({ path: pathOf(1), kind: 'malformed' })
  })

  test('and an anchor or the daemon that runs knows of it', async () => {
    const { sealed, after } = await written()
    zero(1, sealed + pageBytes)
    for (const known of [{ anchor: after }, { head: after }])
      expect(verifyJournal(directory, key, known).flaw).toMatchObject({ path: pathOf(1), kind: 'malformed' })
  })

  test.each([0, 4])('and a batch that holds together comes behind it, page %d', async (page) => {
    const { sealed } = await written()
    rmSync(directory, { recursive: true })
    {
      await using journal = open()
      await journal.append({ type: 'test.note', body: '{"n":1}' })
      const text = 'x'.repeat(21_000)
      await journal.append({ type: 'test.note', body: JSON.stringify({ n: 2, text }) })
      await journal.append({ type: 'test.note', body: '{"n":3}' })
    }
    zero(1, sealed + page * pageBytes)
    expect(() => open()).toThrow(refused)
    expect(verifyJournal(directory, key).ok).toBe(false)
  })

  test('and a later segment goes on behind it', async () => {
    const { sealed } = await written()
    await again(2)
    zero(1, sealed)
    expect(() => open()).toThrow(refused)
    expect(verifyJournal(directory, key).flaw).toMatchObject({ path: pathOf(1), kind: 'malformed' })
  })

  test('or added to, which no later segment tells of', async () => {
    await written()
    await again(2)
    appendFileSync(pathOf(1), Buffer.from([0xff, 10, 0, 10]))
    expect(() => open()).toThrow(refused)
    expect(verifyJournal(directory, key).ok).toBe(false)
  })

  test('or what a later segment tells of is not what stands there any more', async () => {
    const { sealed } = await written()
    zero(1, sealed)
    await again(2)
    zero(1, sealed + pageBytes)
    expect(() => open()).toThrow(refused)
    expect(verifyJournal(directory, key).ok).toBe(false)
  })
})
