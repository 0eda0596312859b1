// What of the evidence beside a journal is let go of with its segments, and where evidence is put: never what is not the journal's own.
import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Confided } from '../../../src/credentials/confided.ts'
import { JournalRecorder } from '../../../src/daemon/governance/recorder.ts'
import { keepIn } from '../../../src/daemon/governance/evidence-file.ts'
import { redactor } from '../../../src/daemon/redactor.ts'
import type { Journal } from '../../../src/journal/journal.ts'
import { pruneEvidence } from '../../../src/journal/prune.ts'
import { listSegments, segmentPath } from '../../../src/journal/segments.ts'
import { verifyJournal } from '../../../src/journal/verify.ts'
import { counting } from '../../support/keeping.ts'
import { tempDir } from '../../support/temp-dir.ts'

const key = new Uint8Array(32).fill(7)
const dayMs = 86_400_000
const keep = { segmentBytes: 3000, keepDays: 30 }
const long = `"${'x'.repeat(2000)}"`
const digest = 'a0'.repeat(32)

let folder: Awaited<ReturnType<typeof tempDir>>
let directory: string
let evidence: string
beforeEach(async () => {
  folder = await tempDir()
  directory = join(folder.path, 'journal')
  evidence = join(directory, 'evidence')
})
afterEach(() => folder[Symbol.asyncDispose]())

/** Sets when a file, or every segment, was last written to, from now. */
const dated = (days: number, paths = listSegments(directory).map((one) => segmentPath(directory, one))) => {
  const then = (Date.now() + days * dayMs) / 1000
  for (const path of paths) utimesSync(path, then, then)
}

const recorderOf = (journal: Journal): JournalRecorder =>
  new JournalRecorder({
    journal,
    directory,
    evidenceBytes: 1000,
    isSynced: false,
    redactor,
    confided: new Confided(),
    separation: 'none',
    folded: () => undefined,
  })

/** Counts until another segment is begun. */
async function nextSegment({ keeping, fold }: ReturnType<typeof counting>): Promise<void> {
  const { length } = listSegments(directory)
  while (listSegments(directory).length === length) await fold.record(keeping.journal, fold.count + 1)
}

/** Some segments, all of which the next start may let go of but for the last. */
async function segments(): Promise<void> {
  const life = counting(directory, key, { ...keep, agesBy: async () => null })
  await using _kept = life.keeping
  for (let n = 0; n < 5; n += 1) await nextSegment(life)
}

/** What a start lets go of 100 days from now. */
async function pruned(): Promise<readonly string[]> {
  const { keeping, warned } = counting(directory, key, {
    ...keep,
    agesBy: async () => Date.now() + 100 * dayMs,
  })
  await using _kept = keeping
  await keeping.settled()
  return warned
}

test('evidence that was written while the clock was behind is kept for as long as the record that names it', async () => {
  await segments()
  dated(50) // by a clock that was put back since
  let now: number | null = null
  const life = counting(directory, key, { ...keep, agesBy: async () => now })
  await using _kept = life.keeping
  await using recorder = recorderOf(life.keeping.journal)
  await life.keeping.settled()
  const [first] = listSegments(directory)
  await recorder.record('call.outcome', { call: 'c' }, { response: long })
  now = Date.now() + 100 * dayMs // and is right again
  await nextSegment(life)
  await life.keeping.settled()
  expect(life.warned).toEqual([])
  expect(listSegments(directory)).not.toContain(first)
  expect(readdirSync(evidence)).toHaveLength(1)
  expect(verifyJournal(directory, key)).toMatchObject({ ok: true, sidecars: 1 })
})

test('so it is where the clock was ahead while the segment before was written to, and was put back before that ended', async () => {
  let now: number | null = null
  const life = counting(directory, key, { ...keep, agesBy: async () => now })
  await using _kept = life.keeping
  await using recorder = recorderOf(life.keeping.journal)
  const opened = (): string => segmentPath(directory, listSegments(directory).at(-1) ?? 0)
  while (statSync(opened()).size < keep.segmentBytes)
    await life.fold.record(life.keeping.journal, life.fold.count + 1)
  const first = opened()
  dated(2, [first])
  await recorder.record('call.outcome', { call: 'c' }, { response: long }) // in the next segment
  expect(opened()).not.toBe(first)
  for (let n = 0; n < 3; n += 1) await nextSegment(life)
  now = Date.now() + 33 * dayMs
  dated(
    32,
    listSegments(directory)
      .map((one) => segmentPath(directory, one))
      .slice(1),
  )
  await nextSegment(life)
  await life.keeping.settled()
  expect(life.warned).toEqual([])
  expect(existsSync(first)).toBe(false)
  expect(verifyJournal(directory, key)).toMatchObject({ ok: true, flaw: null, sidecars: 1 })
})

test('nothing goes but plain files that are named as evidence is, and one that can’t go keeps none of the others', async () => {
  await segments()
  const others = [join(evidence, 'notes.txt'), join(evidence, digest), join(evidence, `${digest}0`)]
  const old = ['0', 'f'].map((digit) => join(evidence, digit.repeat(64)))
  mkdirSync(join(evidence, digest), { recursive: true })
  for (const path of [...others, ...old]) if (!existsSync(path)) writeFileSync(path, '')
  dated(-40, [...others, ...old])
  expect(await pruned()).toEqual([])
  expect(readdirSync(evidence).map((name) => join(evidence, name))).toEqual(expect.arrayContaining(others))
  for (const path of old) expect(existsSync(path)).toBe(false)
})

test('by way of a link in the place of its folder, evidence is neither written nor let go of', async () => {
  await segments()
  const elsewhere = join(folder.path, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, digest), '')
  dated(-40, [join(elsewhere, digest)])
  symlinkSync(elsewhere, evidence)
  expect(await pruned()).toEqual([])
  const { keeping } = counting(directory, key)
  await using _kept = keeping
  await using recorder = recorderOf(keeping.journal)
  await expect(recorder.record('call.outcome', { call: 'c' }, { response: long })).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
    message: expect.stringContaining('so nothing is called'),
  })
  expect(readdirSync(elsewhere)).toEqual([digest])
})

test('evidence that a call writes again while the old goes is there for its record', async () => {
  mkdirSync(evidence, { recursive: true })
  const path = join(evidence, digest)
  for (let round = 0; round < 100; round += 1) {
    writeFileSync(path, long)
    dated(-40, [path])
    const again = keepIn(evidence, digest, Buffer.from(long), { isSynced: false, notBefore: 0 })
    await Promise.all([again, pruneEvidence(evidence, Date.now() - dayMs)])
    expect({ round, names: readdirSync(evidence) }).toEqual({ round, names: [digest] })
  }
})
