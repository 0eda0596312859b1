// The journal holds what it was given, through crashes and full disks, and says so when it does not.
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Journal, type JournalOptions } from '../../src/journal/journal.ts'
import { BatchBytes } from '../../src/journal/batch-bytes.ts'
import { type JournalRecord, layOutBatch, originOf } from '../../src/journal/record.ts'
import type { SallyportError } from '../../src/errors.ts'
import { segmentPath } from '../../src/journal/segments.ts'
import { UncutNote } from '../../src/journal/uncut.ts'
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

  test.each(['write', 'fsync'] as const)(
    'is told to all who fold it before anybody goes on, in order, and never before it was taken (%s)',
    async (durability) => {
      await using journal = open([], { durability })
      const order: string[] = []
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      for (const n of [1, 2]) {
        journal.add({
          ...note(n),
          folded: () => order.push(`folded ${n}`),
          durable: () => (order.push(`durable ${n}`), n === 2 ? resolve() : undefined),
          failed: reject,
        })
        order.push(`taken ${n}`)
      }
      await promise
      const taken = ['taken 1', 'taken 2']
      expect(order).toEqual([...taken, 'folded 1', 'folded 2', 'durable 1', 'durable 2'])
    },
  )

  test('is refused as late as it would be taken, once the journal is closed', async () => {
    const journal = open()
    await journal[Symbol.asyncDispose]()
    const told = Promise.withResolvers<SallyportError>()
    let hasReturned = false
    journal.add({
      ...note(1),
      folded: () => told.reject(new Error('it was folded')),
      durable: () => told.reject(new Error('it was durable')),
      failed: (error) => (hasReturned ? told.resolve(error) : told.reject(new Error('it was early'))),
    })
    hasReturned = true
    expect(await told.promise).toMatchObject({ code: 'ERR_JOURNAL' })
  })

  test('is whole however long its batch is and whatever is written in it, and so is the next', async () => {
    const bodies = ['é'.repeat(100_000), '漢'.repeat(200_000), '😀'.repeat(50_000), 'a']
    {
      await using journal = open()
      const all = (): Promise<unknown> =>
        Promise.all(
          bodies.map((text) => journal.append({ type: 'test.long', body: JSON.stringify({ text }) })),
        )
      await all()
      await all()
    }
    const seen: JournalRecord[] = []
    await using _again = open(seen)
    const long = seen.filter(({ type }) => type === 'test.long').map(({ body }) => body)
    expect(long).toEqual([...bodies, ...bodies].map((text) => ({ text })))
  })

  test('counts by batches: the last record of one vouches for all of it', async () => {
    await using journal = open()
    await Promise.all([journal.append(note(1)), journal.append(note(2)), journal.append(note(3))])
    const lines = readFileSync(segmentPath(directory, 1), 'utf8').trimEnd().split('\n')
    for (const member of ['prev', 'hash', 'mac'])
      expect(lines.map((line) => line.includes(`"${member}":"`))).toEqual([true, false, false, true])
  })

  test('is read back behind the last number of eight digits', async () => {
    for (const n of [1, 2, 3]) {
      await using journal = open()
      await journal.append(note(n))
      if (n === 1) writeFileSync(segmentPath(directory, 99_999_999), '')
    }
    const seen: JournalRecord[] = []
    await using _again = open(seen)
    const notes = seen.filter(({ type }) => type === 'test.note').map(({ body }) => body)
    expect(notes).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
  })

  test('is refused where it would make a segment too long to be read, and what comes next is taken', async () => {
    await using journal = open()
    const body = JSON.stringify({ text: 'x'.repeat(64 << 20) })
    const all = await Promise.allSettled(
      Array.from({ length: 9 }, () => journal.append({ type: 'test.long', body })),
    )
    for (const one of all)
      expect(one).toMatchObject({
        reason: {
          code: 'ERR_JOURNAL',
          message: expect.stringMatching(
            /\(\d+ bytes were to be written at once, and 536870912 are the most\)/,
          ),
        },
      })
    await journal.append(note(1))
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, records: 2, torn: [] })
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

  test('is found out where a record of another history stands in its place', async () => {
    for (const folder of [directory, `${root}/other`]) {
      await using journal = open([], { directory: folder })
      for (let n = 0; n < 4; n += 1) await journal.append(note(folder === directory ? n : -n))
    }
    const [path, other] = [segmentPath(directory, 1), segmentPath(`${root}/other`, 1)]
    const lines = readFileSync(path, 'utf8').split('\n')
    lines[3] = readFileSync(other, 'utf8').split('\n')[3] ?? '' // the same number, the same key
    writeFileSync(path, lines.join('\n'))
    expect(verifyJournal(directory, key).flaw).toMatchObject({ kind: 'chain', line: 4 })
  })

  test('is found out where a record says another number', async () => {
    await using journal = open()
    await journal.append(note(1))
    const after = /"mac":"(\w+)"\}\n$/.exec(readFileSync(segmentPath(directory, 1), 'utf8'))?.[1] ?? ''
    const far = new BatchBytes()
    const place = { ...journal.head, seq: 40 }
    layOutBatch(far, [note(2)], originOf(new Date(), 'd-1', 1), place, { key, after })
    appendFileSync(segmentPath(directory, 1), far.bytes)
    expect(verifyJournal(directory, key).flaw).toMatchObject({ kind: 'chain', line: 3 })
  })

  test('is found out where something else stands between records', async () => {
    await using journal = open()
    await journal.append(note(1))
    const path = segmentPath(directory, 1)
    const [header = '', first = ''] = readFileSync(path, 'utf8').split('\n')
    await journal.append(note(2))
    const [, , second = ''] = readFileSync(path, 'utf8').split('\n')
    for (const stranger of ['not a record', '', '{}', ' ', `${second} `]) {
      writeFileSync(path, `${[header, first, stranger, second].join('\n')}\n`)
      expect(verifyJournal(directory, key).flaw).toMatchObject({ kind: 'torn', line: 3 })
    }
  })

  test('is found out when it was rewritten whole without the key', async () => {
    {
      await using journal = open([], { key: new Uint8Array(32).fill(9) })
      await journal.append(note(1))
    }
    expect(verifyJournal(directory, key).flaw?.kind).toBe('mac')
    const unsealed = verifyJournal(directory, null)
    expect(unsealed.ok).toBe(true)
    expect(unsealed.limit).toContain('no MAC was checked')
    expect(verifyJournal(directory, key).limit).not.toContain('no MAC was checked')
  })

  test('is found out by an anchor when its end was cut off', async () => {
    await using journal = open()
    await journal.append(note(1))
    const { length } = readFileSync(segmentPath(directory, 1))
    await journal.append(note(2))
    const anchor = journal.head
    truncateSync(segmentPath(directory, 1), length)
    expect(verifyJournal(directory, key).ok).toBe(true)
    expect(verifyJournal(directory, key, { anchor }).flaw?.kind).toBe('anchor')
  })
})

test('an end that was torn is told of by the first segment that tells of anything', async () => {
  {
    await using journal = open()
    await journal.append(note(1))
  }
  appendFileSync(segmentPath(directory, 1), 'half of a')
  writeFileSync(segmentPath(directory, 2), '') // its first record found no room
  {
    await using journal = open()
    await journal.append(note(2))
  }
  expect(verifyJournal(directory, key)).toMatchObject({ ok: true, flaw: null, torn: [{ segment: 1 }] })
})

describe('a note of an end that does not count', () => {
  const noted = (): UncutNote => new UncutNote([join(root, 'gone', 'uncut'), join(root, 'uncut')], key)

  /** Two records, a note that the second does not count, and what comes later; says how long the segment is with one. */
  async function left(by: UncutNote, later: readonly number[] = []): Promise<number> {
    await using journal = open()
    await journal.append(note(1))
    const { length } = readFileSync(segmentPath(directory, 1))
    await journal.append(note(2))
    by.write({ segment: 1, length, position: journal.head })
    for (const n of later) await journal.append(note(n))
    return length
  }

  const notes = async (): Promise<readonly unknown[]> => {
    const seen: JournalRecord[] = []
    await using _ = open(seen, { notes: [join(root, 'uncut')] })
    return seen.filter(({ type }) => type === 'test.note').map(({ body }) => body)
  }

  test('takes it away at the next start, and is gone then', async () => {
    const length = await left(noted())
    expect(await notes()).toEqual([{ n: 1 }])
    expect(readFileSync(segmentPath(directory, 1)).length).toBe(length)
    expect(readdirSync(root)).toEqual(['journal'])
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, torn: [] })
  })

  test('takes nothing away where more was written since, in this segment or in the next', async () => {
    await left(noted(), [3])
    cpSync(join(root, 'uncut'), join(root, 'kept'))
    const all = [{ n: 1 }, { n: 2 }, { n: 3 }]
    expect(await notes()).toEqual(all)
    cpSync(join(root, 'kept'), join(root, 'uncut'))
    expect(await notes()).toEqual(all)
  })

  test('takes nothing away where another key wrote it', async () => {
    await left(new UncutNote([join(root, 'uncut')], new Uint8Array(32).fill(8)))
    expect(await notes()).toEqual([{ n: 1 }, { n: 2 }])
  })
})

test.each([
  ['in one batch', (journal: Journal) => Promise.all([journal.append(note(2)), journal.append(note(3))])],
  [
    'each in its own',
    async (journal: Journal) => {
      await journal.append(note(2))
      await journal.append(note(3))
    },
  ],
])(
  'an end torn at any byte of the last two records, %s, is kept, told of, and never part of the chain',
  async (_title, last) => {
    {
      await using journal = open()
      await journal.append(note(1))
      await last(journal)
    }
    const path = segmentPath(directory, 1)
    const whole = readFileSync(path)
    const lines = whole.toString().trimEnd().split('\n')
    const ends = lines.map((_, n) => Buffer.byteLength(`${lines.slice(0, n + 1).join('\n')}\n`))
    const sealed = ends.filter((_, n) => lines[n]?.includes('"mac":'))
    for (let length = ends[1] ?? 0; length <= whole.length; length += 1) {
      const end = sealed.findLast((one) => one <= length) ?? 0
      rmSync(directory, { recursive: true })
      mkdirSync(directory)
      writeFileSync(path, whole.subarray(0, length))
      const seen: JournalRecord[] = []
      {
        await using journal = open(seen)
        await journal.append(note(9))
      }
      expect(seen.length).toBe(ends.indexOf(end) + 1)
      const found = verifyJournal(directory, key)
      expect(found).toMatchObject({ ok: true, segments: 2, records: seen.length + 2 })
      expect(found.torn.map(({ offset, bytes }) => [offset, bytes])).toEqual(
        length === end ? [] : [[end, length - end]],
      )
      const [told] = readFileSync(segmentPath(directory, 2), 'utf8').split('\n')
      expect(JSON.parse(told ?? '')).toMatchObject({
        type: 'segment.opened',
        body: { torn: length === end ? null : { segment: 1, offset: end, bytes: length - end } },
      })
      appendFileSync(path, 'x')
      expect(verifyJournal(directory, key).ok).toBe(false)
    }
  },
)

test('nothing is written behind what is not ours: an end that was cut off, or added to', async () => {
  for (const [n, change] of [truncateAtRecord, (path: string) => appendFileSync(path, 'x')].entries()) {
    const folder = `${directory}-${n}`
    await using journal = open([], { directory: folder })
    await journal.append(note(1))
    await journal.append(note(2))
    change(segmentPath(folder, 1))
    const { length } = readFileSync(segmentPath(folder, 1))
    await expect(journal.append(note(3))).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
      message: expect.stringMatching(/00000001\.jsonl has \d+ bytes, and \d+ were written/),
    })
    expect(readFileSync(segmentPath(folder, 1))).toHaveLength(length)
  }
})

test.each([
  ['a second name', (path: string) => linkSync(path, `${path}.kept`), 'has a second name: remove that'],
  [
    'another in its place',
    (path: string) => renameSync(path, `${path}.kept`),
    '(ENOENT), so nothing is called; put back',
  ],
  [
    'a copy in its place',
    (path: string) => {
      renameSync(path, `${path}.kept`)
      copyFileSync(`${path}.kept`, path)
    },
    'was replaced: put it back',
  ],
])('%s is told as what it is, and calls resume once it is undone', async (_what, change, words) => {
  await using journal = open([])
  await journal.append(note(1))
  const path = segmentPath(directory, 1)
  change(path)
  const refused: unknown = await journal.append(note(2)).catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'ERR_JOURNAL', message: expect.stringContaining(words) })
  // A disk is to be mended where it is the disk that failed, and nowhere else
  expect(String(refused)).not.toContain('mend the disk')
  renameSync(`${path}.kept`, path)
  rmSync(`${path}.kept`, { force: true }) // which a rename to itself leaves
  await journal.append(note(3))
})

function truncateAtRecord(path: string): void {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  truncateSync(path, Buffer.byteLength(`${lines.slice(0, -1).join('\n')}\n`))
}

describe('a segment that is no plain file any more', () => {
  test.each(['link', 'pipe', 'folder'])('is told of and waited for by nobody: a %s', async (what) => {
    const path = segmentPath(directory, 1)
    {
      await using journal = open()
      await journal.append(note(1))
      renameSync(path, `${root}/kept`)
      if (what === 'link') symlinkSync(`${root}/kept`, path)
      else if (what === 'folder') mkdirSync(path)
      else execFileSync('mkfifo', [path])
      await expect(journal.append(note(2))).rejects.toThrow(/was replaced: put it back/)
    }
    expect(verifyJournal(directory, key)).toMatchObject({ ok: false, flaw: { path, kind: 'malformed' } })
    expect(() => open()).toThrow(/something was put in its place/)
  })

  test('is a reason to write nothing at all', async () => {
    await using journal = open()
    await journal.append(note(1))
    renameSync(directory, `${root}/away`)
    mkdirSync(directory)
    await expect(journal.append(note(2))).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
    expect(readdirSync(directory)).toEqual([])
  })
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

test('who waits for news is woken by news, and not by another who waits no longer', async () => {
  await using journal = open()
  const leaves = new AbortController()
  const { signal } = new AbortController()
  const left = journal.moved({ signal: leaves.signal })
  const woken: string[] = []
  const wait = (name: string): Promise<unknown> => journal.moved({ signal }).then(() => woken.push(name))
  const first = wait('first')
  leaves.abort()
  await left
  const second = wait('second')
  await new Promise(setImmediate)
  expect(woken).toEqual([])
  await journal.append({ type: 'news', body: '{}' })
  await Promise.all([first, second])
  expect(woken).toEqual(['first', 'second'])
})
