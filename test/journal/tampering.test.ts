// A journal's pieces taken away, changed places and rewritten: what finds each of it out, and what nothing does.
import { createHmac, hash } from 'node:crypto'
import {
  cpSync,
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
import { Journal } from '../../src/journal/journal.ts'
import type { Position } from '../../src/journal/record.ts'
import { lookFailed } from '../../src/journal/failures.ts'
import { segmentPath } from '../../src/journal/segments.ts'
import { verifyApart } from '../../src/journal/verify-apart.ts'
import { type Known, verifyJournal } from '../../src/journal/verify.ts'
import { counting } from '../support/keeping.ts'

const key = new Uint8Array(32).fill(7)
let root: string
let directory: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sallyport-journal-'))
  directory = join(root, 'journal')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const pathOf = (segment: number): string => segmentPath(directory, segment)
const linesOf = (segment: number): string[] => readFileSync(pathOf(segment), 'utf8').trimEnd().split('\n')
const write = (segment: number, lines: readonly string[]): void =>
  writeFileSync(pathOf(segment), lines.map((line) => `${line}\n`).join(''))
const flawOf = (known: Known = {}) => verifyJournal(directory, key, known).flaw

/** Five segments, a snapshot behind the fourth and the third. Resolves with the last record. */
async function life(): Promise<Position> {
  const { keeping, fold } = counting(directory, key, { segmentBytes: 1500 })
  keeping.keepHead()
  for (let n = 1; n <= 18; n += 1) await fold.record(keeping.journal, n)
  const { head } = keeping.journal
  await keeping[Symbol.asyncDispose]()
  const found = verifyJournal(directory, key, { anchor: head, head })
  expect(found).toMatchObject({ ok: true, segments: 5 })
  return head
}

/** Takes the last record of a segment away, at its border. */
const cutOff = (segment: number, count = 1): void => write(segment, linesOf(segment).slice(0, -count))

describe('what is missing', () => {
  test.each<[string, () => void, object]>([
    ['a segment in the middle', () => rmSync(pathOf(3)), { segment: 4, line: 1, kind: 'chain' }],
    ['the first segment', () => rmSync(pathOf(1)), { segment: 2, line: 1, kind: 'beginning' }],
    [
      'a record in the middle of a segment',
      () => write(2, linesOf(2).toSpliced(2, 1)),
      { segment: 2, line: 3, kind: 'chain' },
    ],
    ['the last record of a segment in the middle', () => cutOff(2), { segment: 3, line: 1, kind: 'chain' }],
    [
      'all records of a segment in the middle',
      () => truncateSync(pathOf(3)),
      { segment: 4, line: 1, kind: 'chain' },
    ],
    [
      'half a line in the middle',
      () => write(2, linesOf(2).with(2, linesOf(2)[2]?.slice(0, 40) ?? '')),
      { segment: 2, line: 3, kind: 'torn' },
    ],
  ])('is found by the chain: %s', async (_what, take, { segment, ...flaw }: { segment?: number }) => {
    await life()
    take()
    expect(flawOf()).toMatchObject({ path: pathOf(segment ?? 0), ...flaw })
  })

  test('behind the last snapshot is found by who knows the end: the head file, an anchor, the daemon that runs, and nobody else', async () => {
    const head = await life()
    cutOff(5)
    const reached = `the last known record ${head.seq} with hash ${head.hash} is not in the journal: it was cut off or rewritten`
    expect(flawOf()).toEqual({ path: `${directory}.head`, line: 0, kind: 'head', detail: reached })
    rmSync(`${directory}.head`)
    expect(flawOf()).toBeNull()
    expect(verifyJournal(directory, key).limit).toContain('without a trace')
    expect(flawOf({ anchor: head })).toMatchObject({ kind: 'anchor', path: directory })
    expect(flawOf({ head })).toMatchObject({
      kind: 'head',
      detail: `the daemon’s last record ${head.seq} with hash ${head.hash} is not in the journal: it was cut off or rewritten`,
    })
  })

  test.each<[string, () => void]>([
    ['the last two segments, at their border', () => [4, 5].forEach((segment) => rmSync(pathOf(segment)))],
    [
      'all behind a record that the snapshot covers',
      () => {
        rmSync(pathOf(5))
        cutOff(4, 2)
      },
    ],
    ['everything', () => [1, 2, 3, 4, 5].forEach((segment) => rmSync(pathOf(segment)))],
  ])('before a snapshot is found by its MAC: %s', async (_what, take) => {
    await life()
    rmSync(`${directory}.head`)
    take()
    expect(flawOf()).toMatchObject({
      kind: 'snapshot',
      path: expect.stringMatching(/snapshots\/\d{16}\.json$/),
      detail: expect.stringMatching(/^it was taken behind record \d+ with hash \w+ is not in the journal/),
    })
  })
})

describe('what changed places', () => {
  test.each<[string, () => void, object]>([
    ['two segments', () => swapFiles(pathOf(2), pathOf(3)), { segment: 2, line: 1, kind: 'chain' }],
    ['two records', () => write(2, swapped(linesOf(2), 1, 2)), { segment: 2, line: 2, kind: 'chain' }],
    [
      'a segment that comes twice',
      () => cpSync(pathOf(4), pathOf(6)),
      { segment: 6, line: 1, kind: 'chain' },
    ],
    [
      'a record that comes twice',
      () => write(2, linesOf(2).toSpliced(2, 0, linesOf(2)[1] ?? '')),
      { segment: 2, line: 3, kind: 'chain' },
    ],
  ])('is found by the chain: %s', async (_what, change, { segment, ...flaw }: { segment?: number }) => {
    await life()
    change()
    expect(flawOf()).toMatchObject({ path: pathOf(segment ?? 0), ...flaw })
  })
})

describe('what was written anew', () => {
  /** Changes a record and puts the hash of its batch right, as whoever has no key can. */
  function rewrite(
    lines: readonly string[],
    at: number,
    batch: { first: number; last: number },
  ): readonly string[] {
    const changed = lines.with(at, (lines[at] ?? '').replace('"n":', '"n":9'))
    const covered = changed
      .slice(batch.first, batch.last + 1)
      .join('\n')
      .replace(/,"hash":"\w+","mac":"\w+"\}$/, '')
    return changed.with(
      batch.last,
      (changed[batch.last] ?? '').replace(/"hash":"\w+"/, `"hash":"${hash('sha256', covered)}"`),
    )
  }

  /** The header, a batch of three records, and one of one. */
  async function batches(): Promise<readonly string[]> {
    await using journal = Journal.open({
      directory,
      key,
      daemon: 'd',
      durability: 'write',
      segmentBytes: 1 << 20,
      replay: () => undefined,
    })
    await Promise.all([1, 2, 3].map((n) => journal.append({ type: 'test', body: `{"n":${n}}` })))
    await journal.append({ type: 'test', body: '{"n":4}' })
    const lines = linesOf(1)
    expect(lines.map((line) => line.includes('"mac":'))).toEqual([true, false, false, true, true])
    return lines
  }

  test('without the key is found by the MAC of its batch', async () => {
    const lines = await batches()
    for (const at of [1, 2, 3]) {
      write(1, rewrite(lines, at, { first: 1, last: 3 }))
      expect(flawOf()).toMatchObject({ line: 2, kind: 'mac' })
    }
    write(1, rewrite(lines, 4, { first: 4, last: 4 }))
    expect(flawOf()).toMatchObject({ line: 5, kind: 'mac' })
  })

  test('in the middle of a batch is found by its hash, and told by its first line; what is not in order, by its own', async () => {
    const lines = await batches()
    for (const at of [1, 2, 3]) {
      write(1, lines.with(at, (lines[at] ?? '').replace('"n":', '"n":9')))
      expect(flawOf()).toMatchObject({
        line: 2,
        kind: 'hash',
        detail: expect.stringContaining('records 2 to 4'),
      })
    }
    for (const changed of [
      lines.toSpliced(2, 1),
      lines.toSpliced(3, 0, lines[1] ?? ''),
      swapped(lines, 2, 3),
    ]) {
      write(1, changed)
      expect(flawOf()).toMatchObject({ kind: 'chain' })
      expect([3, 4]).toContain(flawOf()?.line)
    }
  })

  test('with MACs of another key, or of a snapshot, is none', async () => {
    const head = await life()
    const last = linesOf(5).at(-1) ?? ''
    const macs = [
      createHmac('sha256', new Uint8Array(32)).update(head.hash).digest('hex'),
      createHmac('sha256', key).update('sallyport snapshot\n').update(head.hash).digest('hex'),
      '0'.repeat(64),
    ]
    for (const mac of macs) {
      write(5, [...linesOf(5).slice(0, -1), last.replace(/"mac":"\w+"/, `"mac":"${mac}"`)])
      expect(flawOf()).toMatchObject({ line: linesOf(5).length, kind: 'mac' })
    }
  })

  test('in bytes that are no text is found, though they read as the character that was written', async () => {
    await using journal = Journal.open({
      directory,
      key,
      daemon: 'd',
      durability: 'write',
      segmentBytes: 1 << 20,
      replay: () => undefined,
    })
    await journal.append({ type: 'test', body: '{"text":"\ufffd"}' })
    await journal.append({ type: 'test', body: '{"n":1}' })
    const bytes = readFileSync(pathOf(1))
    const at = bytes.indexOf('\ufffd')
    writeFileSync(
      pathOf(1),
      Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at + 3)]),
    )
    expect(flawOf()).toMatchObject({ line: 2, kind: 'torn', detail: 'the line is not UTF-8' })
  })

  test('is a MAC that was taken out of the middle; at the end, its record counts as cut off', async () => {
    const head = await life()
    const bare = (lines: readonly string[], at: number, ending = /,"prev":"\w+","hash":"\w+","mac":"\w+"/) =>
      lines.with(at, (lines[at] ?? '').replace(ending, ''))
    const [middle, end] = [linesOf(2), linesOf(5)]
    for (const at of [0, 1]) {
      write(2, bare(middle, at, /,"mac":"\w+"/))
      expect(flawOf()).toMatchObject({ path: pathOf(2), line: at + 1, kind: 'torn' })
      write(2, bare(middle, at))
      expect(flawOf()).toMatchObject({ path: pathOf(2), line: at + 1, kind: 'hash' })
    }
    write(2, bare(middle, middle.length - 1))
    expect(flawOf()).toMatchObject({ path: pathOf(3), line: 1 })
    write(2, middle)
    write(5, bare(end, end.length - 1))
    const flaw = { path: `${directory}.head`, kind: 'head' }
    expect(verifyJournal(directory, key)).toMatchObject({ flaw, torn: [{ segment: 5 }] })
    rmSync(`${directory}.head`)
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, torn: [{ segment: 5 }] })
    expect(flawOf({ head })).toMatchObject({ kind: 'head', path: directory })
  })
})

describe('what can’t be read', () => {
  /** Longer than a file may be that is read at once, whoever reads. */
  const tooLong = 3 * 2 ** 30
  const start = (): unknown => counting(directory, key)

  test('since it is too long is not said to be forged, and no start begins without it', async () => {
    await life()
    truncateSync(pathOf(5), tooLong)
    const message = `${pathOf(5)} has ${tooLong} bytes, and at most 2147483647 are read`
    expect(() => verifyJournal(directory, key)).toThrow(message)
    await expect(
      verifyApart({ directory, key, known: {} }, new AbortController()).catch((error: unknown) => {
        throw lookFailed(directory, error)
      }),
    ).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
      message: `${message}, so whether the journal is what was written cannot be said; keep the folder as evidence, and start with an empty one`,
    })
    expect(start).toThrow(
      expect.objectContaining({ code: 'ERR_JOURNAL', message: expect.stringContaining(message) }),
    )
  })

  test.each<[string, string, () => void, string]>([
    [
      'where a file stands in the folder’s place',
      'EEXIST',
      () => writeFileSync(directory, ''),
      'expected a folder; move what is there',
    ],
    [
      'where a file stands above it',
      'ENOTDIR',
      () => (rmSync(root, { recursive: true }), writeFileSync(root, '')),
      'expected folders above it; move the file that is one of them',
    ],
    [
      'where a link leads nowhere',
      'EEXIST',
      () => symlinkSync(join(root, 'none', 'journal'), directory),
      'expected a folder; move what is there',
    ],
    [
      'where nobody can make a folder',
      'ENOENT',
      () => (directory = '/proc/no-such-process/journal'),
      'expected a disk and a folder above it that this user may write to; mend that',
    ],
  ])('is no journal, %s (%s)', (_, errno, put, mend) => {
    put()
    const message = `the journal cannot be made at ${directory} (${errno}): ${mend}, or name another --state`
    expect(start).toThrow(expect.objectContaining({ code: 'ERR_JOURNAL', message }))
  })

  test('of snapshots is named, and no flaw: the records have it all', async () => {
    await life()
    const folder = join(directory, 'snapshots')
    const path = join(folder, readdirSync(folder).toSorted().at(-1) ?? '')
    truncateSync(path, 100)
    expect(verifyJournal(directory, key)).toMatchObject({
      ok: true,
      unusable: [{ path, reason: 'it does not end as a snapshot does' }],
    })
  })

  test.each<[string, (folder: string) => void, string]>([
    ['a folder', (folder) => symlinkSync('snapshots', folder), 'ELOOP'],
    ['a file in the place of the folder', (folder) => writeFileSync(folder, ''), 'ENOTDIR'],
  ])('of snapshots may be %s: a start goes by the records, and tells', async (_, put, errno) => {
    await life()
    const path = join(directory, 'snapshots')
    rmSync(path, { recursive: true })
    put(path)
    const unusable = [{ path, reason: `it cannot be read (${errno})` }]
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, flaw: null, unusable })
    const { keeping, fold } = counting(directory, key)
    await using _keeping = keeping
    expect({ count: fold.count, passedOver: keeping.passedOver }).toEqual({ count: 18, passedOver: unusable })
  })

  test('of snapshots, since a daemon let go of it meanwhile, is not spoken of', async () => {
    await life()
    // What a folder still lists, and whoever reads it does not find.
    symlinkSync('gone', join(directory, 'snapshots', `${'1'.padStart(16, '0')}.json`))
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, unusable: [] })
  })
})

describe('evidence beside the journal', () => {
  const text = 'what was said '.repeat(10)
  const digest = hash('sha256', text)
  const fileOf = (name = digest): string => join(directory, 'evidence', name)
  const said = { sha256: digest, bytes: text.length, path: `evidence/${digest}` }

  async function recorded(...bodies: readonly object[]): Promise<void> {
    await using journal = Journal.open({
      directory,
      key,
      daemon: 'd',
      durability: 'write',
      segmentBytes: 1 << 20,
      replay: () => undefined,
    })
    mkdirSync(join(directory, 'evidence'))
    writeFileSync(fileOf(), text)
    for (const body of bodies) await journal.append({ type: 'test', body: JSON.stringify(body) })
  }

  test('is read, each file once', async () => {
    await recorded({ request: said }, { response: said }, { request: 'short', response: null }, {})
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, sidecars: 1 })
  })

  test.each<[string, () => void, RegExp]>([
    ['missing', () => rmSync(fileOf()), /the file is missing/],
    [
      'the folder with it',
      () => rmSync(join(directory, 'evidence'), { recursive: true }),
      /the file is missing/,
    ],
    [
      'changed',
      () => writeFileSync(fileOf(), text.replace('what', 'that')),
      /digest is \w{64}: it was changed/,
    ],
    ['longer', () => writeFileSync(fileOf(), `${text} `), /digest is \w{64}: it was changed/],
    ['empty', () => writeFileSync(fileOf(), ''), /digest is \w{64}: it was changed/],
    [
      'a link to the same',
      () => {
        renameSync(fileOf(), join(root, 'elsewhere'))
        symlinkSync(join(root, 'elsewhere'), fileOf())
      },
      /no plain file/,
    ],
    [
      'a folder',
      () => {
        rmSync(fileOf())
        mkdirSync(fileOf())
      },
      /no plain file/,
    ],
  ])('that is %s is named with the line of its record', async (_what, change, detail) => {
    await recorded({ n: 1 }, { request: said, response: 'short' })
    change()
    expect(flawOf()).toMatchObject({
      path: pathOf(1),
      line: 3,
      kind: 'evidence',
      detail: expect.stringMatching(detail),
    })
    expect(flawOf()?.detail).toContain(`record 3: its request is to lie in evidence/${digest}`)
  })

  test.each([
    ['another length', { ...said, bytes: 3 }, /the file has \d+ bytes, the record says 3/],
    ['a way out of the folder', { ...said, path: '../../etc/passwd' }, /no place for evidence/],
    ['another’s place', { ...said, path: `evidence/${'0'.repeat(64)}` }, /no place for evidence/],
    ['no digest', { path: 'evidence/x' }, /no place for evidence/],
  ])('of which a record says %s is not what it says', async (_what, request, detail) => {
    await recorded({ response: request })
    expect(flawOf()).toMatchObject({ line: 2, kind: 'evidence', detail: expect.stringMatching(detail) })
  })
})

const swapped = (lines: readonly string[], a: number, b: number): readonly string[] =>
  lines.with(a, lines[b] ?? '').with(b, lines[a] ?? '')

function swapFiles(a: string, b: string): void {
  renameSync(a, `${a}.aside`)
  renameSync(b, a)
  renameSync(`${a}.aside`, b)
}
