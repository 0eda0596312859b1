// The journal holds what it was given, through crashes and full disks, and says so when it does not.
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Journal, type JournalOptions } from '../../src/journal/journal.ts'
import type { JournalRecord } from '../../src/journal/record.ts'
import { segmentPath } from '../../src/journal/segments.ts'
import { verifyJournal } from '../../src/journal/verify.ts'

const key = new Uint8Array(32).fill(7)
let root: string
let directory: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sallyport-journal-'))
  directory = join(root, 'journal')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const open = (seen: JournalRecord[] = [], more: Partial<JournalOptions> = {}): Journal =>
  Journal.open({
    directory,
    key,
    daemon: 'd-1',
    durability: 'write',
    segmentBytes: 1 << 20,
    replay: (record) => seen.push(record),
    ...more,
  })

const note = (n: number) => ({ type: 'test.note', body: JSON.stringify({ n }) })

describe('what was appended', () => {
  test.each(['write', 'fsync'] as const)('is replayed in order after a restart (%s)', async (durability) => {
    {
      await using journal = open([], { durability })
      await Promise.all(Array.from({ length: 100 }, (_, n) => journal.append(note(n))))
      await journal.append(note(100))
    }
    const seen: JournalRecord[] = []
    await using _again = open(seen)
    const notes = seen.filter(({ type }) => type === 'test.note').map(({ body }) => body)
    expect(notes).toEqual(Array.from({ length: 101 }, (_, n) => ({ n })))
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, segments: 2, torn: [] })
  })

  test('is in several segments once one is long enough, and one chain', async () => {
    await using journal = open([], { segmentBytes: 1000 })
    for (let n = 0; n < 30; n += 1) await journal.append(note(n))
    const { ok, segments, records } = verifyJournal(directory, key)
    expect({ ok, records }).toEqual({ ok: true, records: 30 + segments })
    expect(segments).toBeGreaterThan(5)
  })
})

describe('a journal that was tampered with', () => {
  test.each([
    ['an edited body', (text: string) => text.replace('{"n":3}', '{"n":4}'), 'hash'],
    ['a removed line', (text: string) => text.split('\n').toSpliced(3, 1).join('\n'), 'chain'],
    ['swapped lines', (text: string) => swap(text), 'chain'],
  ])('is found out: %s', async (_title, tamper, kind) => {
    {
      await using journal = open()
      for (let n = 0; n < 6; n += 1) await journal.append(note(n))
    }
    const path = segmentPath(directory, 1)
    writeFileSync(path, tamper(readFileSync(path, 'utf8')))
    expect(verifyJournal(directory, key).flaw?.kind).toBe(kind)
    expect(() => open()).toThrow(/does not hold together/)
  })

  test('is found out when it was rewritten whole without the key', async () => {
    {
      await using journal = open([], { key: new Uint8Array(32).fill(9) })
      await journal.append(note(1))
    }
    expect(verifyJournal(directory, key).flaw?.kind).toBe('mac')
    expect(verifyJournal(directory, null).ok).toBe(true)
  })

  test('is found out by an anchor when its end was cut off', async () => {
    await using journal = open()
    await journal.append(note(1))
    const { length } = readFileSync(segmentPath(directory, 1))
    const anchor = await journal.append(note(2))
    truncateSync(segmentPath(directory, 1), length)
    expect(verifyJournal(directory, key).ok).toBe(true)
    expect(verifyJournal(directory, key, anchor).flaw?.kind).toBe('anchor')
  })
})

test('an end torn at any byte is kept, told of, and never part of the chain', async () => {
  {
    await using journal = open()
    await journal.append(note(1))
    await Promise.all([journal.append(note(2)), journal.append(note(3))])
  }
  const path = segmentPath(directory, 1)
  const whole = readFileSync(path)
  const lines = whole.toString().trimEnd().split('\n')
  const sealed = Buffer.byteLength(`${lines[0]}\n${lines[1]}\n`)
  for (let length = sealed; length < whole.length; length += 7) {
    rmSync(directory, { recursive: true })
    const seen: JournalRecord[] = []
    {
      await using _empty = open()
    }
    writeFileSync(path, whole.subarray(0, length))
    {
      await using journal = open(seen)
      await journal.append(note(9))
    }
    expect(seen.filter(({ type }) => type === 'test.note')).toHaveLength(1)
    const found = verifyJournal(directory, key)
    expect(found).toMatchObject({ ok: true, segments: 2 })
    expect(found.torn.map(({ bytes }) => bytes)).toEqual(length === sealed ? [] : [length - sealed])
    appendFileSync(path, 'x')
    expect(verifyJournal(directory, key).ok).toBe(false)
  }
})

test('nothing is accepted while its folder is gone, and everything again once it is back', async () => {
  await using journal = open()
  await journal.append(note(1))
  renameSync(directory, `${directory}.away`)
  await expect(journal.append(note(2))).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
  renameSync(`${directory}.away`, directory)
  await journal.append(note(3))
  const { ok, records } = verifyJournal(directory, key)
  expect({ ok, records }).toEqual({ ok: true, records: 3 })
})

function swap(text: string): string {
  const lines = text.split('\n')
  const [a = '', b = ''] = lines.slice(2, 4)
  return lines.toSpliced(2, 2, b, a).join('\n')
}
