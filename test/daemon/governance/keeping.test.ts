// Snapshots and the end of old segments: a start that reads less, and never another journal than the one that was written.
import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { recordFindings } from '../../../src/daemon/governance/findings.ts'
import { Journal } from '../../../src/journal/journal.ts'
import { listSegments, segmentPath } from '../../../src/journal/segments.ts'
import { verifyJournal } from '../../../src/journal/verify.ts'
import { counting } from '../../support/keeping.ts'

const key = new Uint8Array(32).fill(7)
let root: string
let directory: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sallyport-keeping-'))
  directory = join(root, 'journal')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const open = (more: Parameters<typeof counting>[2] = {}) => counting(directory, key, more)
const snapshots = (): string[] => readdirSync(join(directory, 'snapshots')).sort()
const newest = (): string => join(directory, 'snapshots', snapshots().at(-1) ?? '')

/** A life of the daemon that counts up to `n`. */
async function life(n: number, more: Parameters<typeof counting>[2] = {}): Promise<void> {
  const { keeping, fold } = open(more)
  await using _kept = keeping
  while (fold.count < n) await fold.record(keeping.journal, fold.count + 1)
}

/** What a start comes to: the count, and how many records it folded for it. */
async function start(more: Parameters<typeof counting>[2] = {}) {
  const { keeping, fold, warned } = open(more)
  await using _kept = keeping
  await keeping.settled()
  return { count: fold.count, folded: fold.seen.length, passedOver: keeping.passedOver, warned }
}

describe('a start', () => {
  test('folds the last snapshot and what came after, not all', async () => {
    await life(200, { segmentBytes: 5000 })
    const { count, folded, passedOver } = await start()
    expect({ count, passedOver }).toEqual({ count: 200, passedOver: [] })
    expect(folded).toBeLessThan(40)
    expect(snapshots()).toHaveLength(2)
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, begins: { seq: 0 } })
  })

  test('folds everything where there is no snapshot', async () => {
    await life(50, { segmentBytes: 3000 })
    rmSync(join(directory, 'snapshots'), { recursive: true })
    expect(await start()).toMatchObject({ count: 50, passedOver: [] })
  })

  test.each<[string, (path: string) => void, string?]>([
    [
      'an edited state',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('"count":', '"count":9')),
    ],
    [
      'an edited place',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('"seq":', '"seq":1')),
    ],
    ['half of it', (path) => truncateSync(path, 100)],
    ['nothing in it', (path) => truncateSync(path, 0)],
    ['something behind it', (path) => appendFileSync(path, '{}\n')],
    ['another key', (path) => foreign(path, new Uint8Array(32).fill(8))],
    ['the same key and another chain', (path) => foreign(path, key), 'snapshot'],
  ])('passes over a snapshot with %s, says so, and comes to the same', async (_title, tamper, kind) => {
    await life(60, { segmentBytes: 3000 })
    await start()
    tamper(newest())
    const { count, passedOver } = await start()
    expect(count).toBe(60)
    expect(passedOver).toHaveLength(1)
    expect(verifyJournal(directory, key).flaw?.kind).toBe(kind)
    // Once a record tells of it, it is accounted for.
    {
      await using journal = Journal.open({
        directory,
        key,
        daemon: 'd-1',
        durability: 'write',
        segmentBytes: 1 << 20,
        replay: () => undefined,
      })
      await journal.append({ type: 'snapshot.refused', body: JSON.stringify(passedOver[0]) })
    }
    expect(verifyJournal(directory, key).ok).toBe(true)
  })

  /** Puts a snapshot with a count of its own, of a chain of its own, in the place of this one's. */
  function foreign(path: string, itsKey: Uint8Array): void {
    const [covered = ''] = readFileSync(path, 'utf8').split(',"mac":')
    const other = covered
      .replace(/"hash":"[0-9a-f]{64}"/, `"hash":"${'f'.repeat(64)}"`)
      .replace(/"count":\d+/, '"count":9')
    const mac = createHmac('sha256', itsKey).update('sallyport snapshot\n').update(other).digest('hex')
    writeFileSync(path, `${other},"mac":"${mac}"}\n`)
  }

  test('does not begin on a snapshot of records that a loss of power took', async () => {
    await life(30)
    await start() // the snapshot of all 30, at the end of segment 1
    const bytes = readFileSync(segmentPath(directory, 1))
    rmSync(segmentPath(directory, 2))
    const lines = bytes.toString('utf8').split('\n').slice(0, 20)
    writeFileSync(segmentPath(directory, 1), `${lines.join('\n')}\n`)
    const { count, passedOver } = await start()
    expect(count).toBe(19)
    expect(passedOver).toHaveLength(1)
  })
})

describe('a crash while a snapshot is written', () => {
  const states: readonly [string, () => void][] = [
    ['before the draft', () => rmSync(newest())],
    ['in the draft', () => writeFileSync(join(directory, 'snapshots', '.draft'), '{"version":1,')],
    [
      'between the draft and its name',
      () => {
        copyFileSync(newest(), join(directory, 'snapshots', '.draft'))
        rmSync(newest())
      },
    ],
    [
      'before the next segment was begun',
      () => rmSync(segmentPath(directory, listSegments(directory).at(-1) ?? 0)),
    ],
    [
      'before the old ones were removed',
      () => cpSync(newest(), join(directory, 'snapshots', '0000000000000001.json')),
    ],
  ]
  test.each(states)('%s: the next start comes to the same', async (_title, crash) => {
    await life(40, { segmentBytes: 3000 })
    await start()
    crash()
    const { count } = await start()
    expect(count).toBe(40)
    expect((await start()).count).toBe(40)
    expect(snapshots().filter((name) => name.endsWith('.json'))).toHaveLength(2)
    expect(verifyJournal(directory, key).ok).toBe(true)
  })
})

describe('keep_days', () => {
  const age = (days: number): void => {
    for (const segment of listSegments(directory)) {
      const then = Date.now() / 1000 - days * 86_400
      utimesSync(segmentPath(directory, segment), then, then)
    }
  }
  const keep = { segmentBytes: 3000, keepDays: 30 }

  test('0 keeps every segment', async () => {
    await life(60, { segmentBytes: 3000 })
    const before = listSegments(directory)
    age(1000)
    await start()
    expect(listSegments(directory)).toEqual([...before, before.length + 1])
  })

  test('removes whole segments that are older, says so first, and the chain is verified from there', async () => {
    await life(60, keep)
    const anchor = verifyJournal(directory, key).head
    age(31)
    expect(await start(keep)).toMatchObject({ count: 60, warned: [] })
    const [first = 0] = listSegments(directory)
    expect(first).toBeGreaterThan(3)
    const { ok, begins, records, head } = verifyJournal(directory, key)
    expect({ ok, records }).toEqual({ ok: true, records: head.seq - begins.seq })
    expect(begins.seq).toBeGreaterThan(0)
    expect(verifyJournal(directory, key, { anchor: begins }).ok).toBe(true)
    expect(verifyJournal(directory, key, { anchor }).ok).toBe(true)
    expect(verifyJournal(directory, key, { anchor: { ...begins, seq: begins.seq - 1 } }).flaw).toMatchObject({
      kind: 'anchor',
      detail: expect.stringContaining('keep_days'),
    })
    expect(await start(keep)).toMatchObject({ count: 60, passedOver: [] })
  })

  test('keeps what is younger, and evidence that a record left names', async () => {
    await life(60, keep)
    const evidence = join(directory, 'evidence')
    mkdirSync(evidence)
    for (const [name, days] of [
      ['0'.repeat(64), 40],
      ['1'.repeat(64), 1],
    ] as const) {
      writeFileSync(join(evidence, name), '')
      const then = Date.now() / 1000 - days * 86_400
      utimesSync(join(evidence, name), then, then)
    }
    const before = listSegments(directory)
    await start(keep)
    expect(listSegments(directory).slice(0, before.length)).toEqual(before)
    age(31)
    await start(keep)
    expect(readdirSync(evidence)).toEqual(['1'.repeat(64)])
  })

  test.each<[string, (path: string) => void]>([
    ['nothing', (path) => writeFileSync(path, '')],
    ['half of its first record', (path) => writeFileSync(path, '{"seq":3')],
  ])('goes on after a segment that holds %s, and the chain is verified from there', async (_title, leave) => {
    await life(30, keep)
    const left = (listSegments(directory).at(-1) ?? 0) + 1
    appendFileSync(segmentPath(directory, left - 1), '{"seq":') // which the segment after the next tells of
    leave(segmentPath(directory, left))
    await life(60, keep)
    await life(61, keep)
    age(31)
    const before = join(root, 'before')
    cpSync(directory, before, { recursive: true, preserveTimestamps: true })
    expect(await start(keep)).toMatchObject({ count: 61, warned: [] })
    expect(listSegments(directory)[0]).toBeGreaterThan(left)
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, flaw: null })
    // A crash after any removal.
    const gone = listSegments(before).filter((segment) => !listSegments(directory).includes(segment))
    for (const segment of gone.toReversed()) {
      cpSync(segmentPath(before, segment), segmentPath(directory, segment), { preserveTimestamps: true })
      expect(verifyJournal(directory, key)).toMatchObject({ ok: true, flaw: null })
    }
  })

  test('a segment that is missing, or whose first record is not to be read, ends what goes', async () => {
    await life(60, keep)
    age(31)
    for (const spoil of [
      (path: string) => rmSync(path),
      (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('"prev"', '"perv"')),
    ]) {
      const copy = join(root, 'copy')
      cpSync(directory, copy, { recursive: true, preserveTimestamps: true })
      spoil(segmentPath(copy, 3))
      const { keeping } = counting(copy, key, keep)
      await keeping.settled()
      await keeping[Symbol.asyncDispose]()
      expect(listSegments(copy)).toContain(2)
      rmSync(copy, { recursive: true })
    }
  })

  test('a beginning that no record accounts for is found out', async () => {
    await life(60, { segmentBytes: 3000 })
    rmSync(segmentPath(directory, 1))
    expect(verifyJournal(directory, key).flaw).toMatchObject({ kind: 'beginning' })
  })

  test('a crash after any removal leaves a journal that holds together and is let go of by the next start', async () => {
    await life(60, keep)
    age(31)
    const before = join(root, 'before')
    cpSync(directory, before, { recursive: true, preserveTimestamps: true })
    await start(keep)
    const after = listSegments(directory)
    const gone = listSegments(before).filter((segment) => !after.includes(segment))
    expect(gone.length).toBeGreaterThan(2)
    const pruned = join(root, 'pruned')
    cpSync(directory, pruned, { recursive: true, preserveTimestamps: true })
    for (let removed = 0; removed <= gone.length; removed += 1) {
      // The record is durable, and the first `removed` segments are gone.
      rmSync(directory, { recursive: true })
      cpSync(pruned, directory, { recursive: true, preserveTimestamps: true })
      for (const segment of gone.slice(removed))
        cpSync(segmentPath(before, segment), segmentPath(directory, segment), { preserveTimestamps: true })
      expect(verifyJournal(directory, key)).toMatchObject({ ok: true, flaw: null })
      expect(await start(keep)).toMatchObject({ count: 60, warned: [] })
      expect(existsSync(segmentPath(directory, gone[0] ?? 0))).toBe(false)
    }
  })

  describe('where an end was lost with snapshots of it', () => {
    /** Leaves the first two segments, and both snapshots, which are of places behind them. */
    const lost = async (): Promise<readonly string[]> => {
      await life(60, { segmentBytes: 3000 })
      await life(61, { segmentBytes: 3000 })
      for (const segment of listSegments(directory).slice(2)) rmSync(segmentPath(directory, segment))
      return snapshots()
    }

    test('goes by those of this chain alone', async () => {
      const refused = await lost()
      await life(20, keep)
      expect(snapshots()).toEqual(expect.arrayContaining([...refused])) // since no record tells of it
      await life(35, keep)
      age(31)
      const [first] = listSegments(directory)
      await life(50, keep)
      expect(listSegments(directory)).not.toContain(first)
      expect(await start(keep)).toMatchObject({ count: 50, warned: [] })
    })

    test('those go once records tell of them', async () => {
      const refused = await lost()
      {
        const { keeping, fold, warned } = open(keep)
        await using _kept = keeping
        const recorded: unknown[] = []
        const record = async (type: 'snapshot.refused', body: Readonly<Record<string, unknown>>) => {
          expect(snapshots()).toEqual(expect.arrayContaining([...refused]))
          recorded.push(body)
          const place = await keeping.journal.append({ type, body: JSON.stringify(body) })
          fold.fold({ type, body, ...place })
          await keeping.settled()
          return place
        }
        await recordFindings(keeping, { refused: [] }, { record }, () => undefined)
        await keeping.settled()
        expect(recorded).toEqual(keeping.passedOver)
        expect(recorded).toHaveLength(2)
        expect(snapshots()).toEqual([expect.stringMatching(/json$/)])
        expect(refused).not.toContain(snapshots()[0])
        expect(warned).toEqual([])
      }
      expect(verifyJournal(directory, key)).toMatchObject({ ok: true, flaw: null })
      expect(await start(keep)).toMatchObject({ passedOver: [], warned: [] })
    })
  })

  test('without a snapshot that can be used, what is left is not taken for all', async () => {
    await life(60, keep)
    age(31)
    await start(keep)
    rmSync(join(directory, 'snapshots'), { recursive: true })
    expect(() => open(keep)).toThrow(/let go of, and no snapshot of it can be used/)
  })

  test('a flaw in what is left is told with its place, and not as the want of what came before', async () => {
    await life(60, keep)
    age(31)
    await start(keep)
    await life(62, keep)
    const last = listSegments(directory).at(-1) ?? 0
    const text = readFileSync(segmentPath(directory, last), 'utf8')
    writeFileSync(segmentPath(directory, last), text.replace('{"n":61}', '{"n":63}'))
    const { flaw } = verifyJournal(directory, key)
    expect(flaw).toMatchObject({ path: segmentPath(directory, last), kind: 'hash' })
    const words = `${flaw?.path}:${flaw?.line}: ${flaw?.detail}; keep the folder`
    expect(() => open(keep)).toThrow(words)
  })
})

test('a daemon that is killed at any instant of writing, taking snapshots and letting go loses nothing that was durable', async () => {
  const script = fileURLToPath(new URL('../../fixtures/keep-journal.ts', import.meta.url))
  let durable = 0
  for (let round = 0; round < 12; round += 1) {
    const child = spawn(process.execPath, [script, directory, Buffer.from(key).toString('hex')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const until = durable + 15 + round * 7
    child.stdout.on('data', (chunk: Buffer) => {
      durable = Number(chunk.toString().trim().split('\n').at(-1))
      if (durable >= until) child.kill('SIGKILL')
    })
    await once(child, 'exit')
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true })
  }
  const { count, warned } = await start({ segmentBytes: 1500, keepDays: 1 })
  expect(count).toBeGreaterThanOrEqual(durable)
  expect(warned).toEqual([])
  expect(listSegments(directory)[0]).toBeGreaterThan(1)
})

describe('the head file', () => {
  const counted = async (n: number): Promise<void> => {
    const { keeping, fold } = open()
    await using _kept = keeping
    keeping.keepHead()
    while (fold.count < n) await fold.record(keeping.journal, fold.count + 1)
  }
  const cutOff = (records: number): void => {
    const path = segmentPath(directory, listSegments(directory).at(-1) ?? 0)
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    writeFileSync(path, `${lines.slice(0, -records).join('\n')}\n`)
  }

  test('says nothing of a journal that is whole, nor of what came after it was written', async () => {
    await counted(3)
    await life(5) // without a head file: as after a kill before it was written
    expect(open().keeping.shortened).toBeNull()
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, shortened: [] })
  })

  test('shows an end that was cut off: offline, at the next start, and for good once that has recorded it', async () => {
    await counted(5)
    const { head } = verifyJournal(directory, key)
    cutOff(2)
    expect(verifyJournal(directory, key).flaw).toMatchObject({ kind: 'head', path: `${directory}.head` })

    {
      const { keeping, fold } = open()
      await using _kept = keeping
      const { shortened } = keeping
      expect(shortened).toMatchObject({ lost: head, found: { seq: head.seq - 2 } })
      const { seq } = await keeping.journal.append({
        type: 'journal.shortened',
        body: JSON.stringify(shortened),
      })
      fold.fold({ type: 'journal.shortened', body: shortened, seq })
      expect(verifyJournal(directory, key).flaw).toMatchObject({ kind: 'head' })
      keeping.keepHead()
    }
    const { ok, shortened } = verifyJournal(directory, key)
    expect(ok).toBe(true)
    expect(shortened).toEqual([
      {
        seq: head.seq,
        at: expect.any(String),
        lost: head.seq,
        reason: expect.stringContaining(`record ${head.seq}`),
      },
    ])
  })

  test('is there before the first record: one that is taken away is told of', async () => {
    {
      await using keeping = open().keeping
      expect(keeping.shortened).toBeNull()
    }
    await life(3)
    rmSync(`${directory}.head`)
    const { head } = verifyJournal(directory, key)
    await using keeping = open().keeping
    expect(keeping.shortened).toMatchObject({
      lost: null,
      found: head,
      reason: `${directory}.head is missing, so whether its end was cut off cannot be told`,
    })
  })

  test('of another key, or with another place in it, is a flaw and tells a start so', async () => {
    await counted(2)
    const path = `${directory}.head`
    const text = readFileSync(path, 'utf8')
    for (const forged of [text.replace(/"seq":\d+/, '"seq":1'), text.replace(/\w"\}\n$/, 'x"}\n'), '']) {
      writeFileSync(path, forged)
      expect(verifyJournal(directory, key).flaw).toMatchObject({ kind: 'head', path })
      await using keeping = open().keeping
      expect(keeping.shortened).toMatchObject({
        lost: null,
        reason: expect.stringContaining('not to be used'),
      })
    }
  })

  test('that cannot be written is told of once, and what is recorded is recorded', async () => {
    const { keeping, fold, warned } = open()
    rmSync(`${directory}.head`)
    mkdirSync(`${directory}.head`)
    keeping.keepHead()
    for (let n = 1; n <= 3; n += 1) await fold.record(keeping.journal, n)
    await keeping[Symbol.asyncDispose]()
    expect(warned).toEqual([expect.stringMatching(/^head: .*EISDIR/)])
  })
})
