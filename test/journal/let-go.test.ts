// A journal whose beginning is let go of while it is verified is whole, as far as it still is there.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Journal } from '../../src/journal/journal.ts'
import { pruneJournal } from '../../src/journal/prune.ts'
import { listSegments, segmentPath } from '../../src/journal/segments.ts'
import { verifyJournal } from '../../src/journal/verify.ts'

const key = new Uint8Array(32).fill(7)
const [evidence, sha256] = ['what lies beside', hash('sha256', 'what lies beside')]

/** Five segments and evidence that the first one names; of those two it is on record that they go. */
async function journalWithOldSegments(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'sallyport-let-go-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  mkdirSync(join(directory, 'evidence'))
  writeFileSync(join(directory, 'evidence', sha256), evidence)
  const request = { sha256, bytes: evidence.length, path: `evidence/${sha256}` }
  await using journal = Journal.open({
    directory,
    key,
    daemon: 'd-1',
    durability: 'write',
    segmentBytes: 3000,
    replay: () => undefined,
  })
  for (let n = 0; listSegments(directory).length < 5; n += 1) {
    await journal.append({ type: 'test.note', body: JSON.stringify(n < 2 ? { n, request } : { n }) })
  }
  const dies = new Error('before anything is removed')
  const pruning = pruneJournal(directory, {
    keepDays: 1,
    covered: 2,
    now: Date.now() + 3 * 86_400_000,
    record: async (pruned) => {
      await journal.append({ type: 'journal.pruned', body: JSON.stringify(pruned) })
      throw dies
    },
  })
  await expect(pruning).rejects.toBe(dies)
  return directory
}

/** A place that nothing is at, whose seq is looked up at each batch: at the `at`th time `then` comes in between. */
function comesBetween(at: number, then: () => void): { readonly seq: number; readonly hash: string } {
  let looks = 0
  return {
    get seq() {
      looks += 1
      if (looks === at) then()
      return 0
    },
    hash: '',
  }
}

test.each([
  ['before its evidence is looked at', 4],
  ['before its second segment is', 7],
])('a journal is whole whose beginning is let go of %s', async (_, at) => {
  const directory = await journalWithOldSegments()
  expect(verifyJournal(directory, key)).toMatchObject({ ok: true, begins: { seq: 0 }, sidecars: 1 })
  let isGone = false
  const anchor = comesBetween(at, () => {
    isGone = true
    for (const segment of [1, 2]) rmSync(segmentPath(directory, segment))
    rmSync(join(directory, 'evidence', sha256))
  })
  const { ok, flaw, begins } = verifyJournal(directory, key, { anchor })
  expect({ isGone, ok, flaw }).toEqual({ isGone: true, ok: true, flaw: null })
  expect(begins.seq).toBeGreaterThan(2)
})

test('what nobody said would go is missed, though it goes meanwhile', async () => {
  const directory = await journalWithOldSegments()
  const anchor = comesBetween(4, () => {
    for (const segment of [1, 2, 3]) rmSync(segmentPath(directory, segment))
  })
  expect(verifyJournal(directory, key, { anchor })).toMatchObject({ ok: false, flaw: { kind: 'beginning' } })
})

test.each<[string, (path: string) => void]>([
  ['a link to it', (path) => symlinkSync(`${path}.away`, path)],
  ['a folder', (path) => mkdirSync(path)],
  ['a pipe', (path) => execFileSync('mkfifo', [path])],
])(
  'where the beginning was let go of, %s in place of the segment that is first now is a flaw',
  async (_, put) => {
    const directory = await journalWithOldSegments()
    for (const segment of [1, 2]) rmSync(segmentPath(directory, segment))
    const path = segmentPath(directory, 3)
    renameSync(path, `${path}.away`)
    put(path)
    expect(verifyJournal(directory, key)).toMatchObject({ ok: false, flaw: { path, kind: 'malformed' } })
  },
)
