// Evidence: whole up to its cap, beside the journal above it, never with a secret that has a known shape, or not at all.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, statSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Basis, Target } from '../../../src/call/about.ts'
import type { Ended, Intent, Told } from '../../../src/call/ports.ts'
import { beginning } from '../../../src/journal/segments.ts'
import { Journal } from '../../../src/journal/journal.ts'
import { draftOf, removeDrafts } from '../../../src/journal/sidecars.ts'
import { Confided } from '../../../src/credentials/confided.ts'
import { type Durable, JournalRecorder } from '../../../src/daemon/governance/recorder.ts'
import { redactor } from '../../../src/daemon/redactor.ts'
import type { CallId } from '../../../src/lib/ids.ts'
import type { Admission } from '../../../src/schema/governor.ts'
import { counting } from '../../support/keeping.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { isRoot } from '../../support/user.ts'

const cap = 1000
let folder: Awaited<ReturnType<typeof tempDir>>
let directory: string
let journal: Journal
let recorder: JournalRecorder
let folded: Durable[]

const journalIn = (at: string): Journal =>
  Journal.open({
    directory: at,
    key: new Uint8Array(32),
    daemon: 'd-1',
    durability: 'write',
    segmentBytes: 1 << 20,
    replay: () => undefined,
  })
const recorderOf = (of: Journal, at: string): JournalRecorder =>
  new JournalRecorder({
    journal: of,
    directory: at,
    evidenceBytes: cap,
    isSynced: true,
    redactor,
    confided: new Confided(),
    separation: 'none',
    folded: (record) => folded.push(record),
  })

beforeEach(async () => {
  folder = await tempDir()
  directory = join(folder.path, 'journal')
  journal = journalIn(directory)
  folded = []
  recorder = recorderOf(journal, directory)
})
afterEach(async () => {
  await journal[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const text = (): string => readFileSync(join(directory, '00000001.jsonl'), 'utf8')
const last = (): Record<string, unknown> => {
  const line = JSON.parse(text().trimEnd().split('\n').at(-1) ?? '') as { body: Record<string, unknown> }
  return line.body
}
/** A JSON text of so many bytes. */
const json = (bytes: number, filler = 'x'): string =>
  `"${filler.repeat(Math.floor((bytes - 2) / Buffer.byteLength(filler)))}"`

describe('a response', () => {
  test.each([
    ['of exactly the cap', json(cap)],
    [
      'of exactly the cap, in characters of three bytes',
      `${json(cap - 1, '€').slice(0, -1)}ab"`.slice(0, -1),
    ],
  ])('%s is kept whole in its record', async (_title, said) => {
    expect(Buffer.byteLength(said)).toBeLessThanOrEqual(cap)
    await recorder.record('call.outcome', { call: 'c' }, { response: said })
    expect(last()).toEqual({ separation: 'none', call: 'c', response: said })
  })

  test.each([
    ['one byte longer', json(cap + 1)],
    ['of fewer characters and more bytes', json(cap + 10, '€')],
    ['huge', json(20_000_000)],
  ])('%s lies beside the journal, by digest, for nobody else to read', async (_title, said) => {
    expect(Buffer.byteLength(said)).toBeGreaterThan(cap)
    await recorder.record('call.outcome', { call: 'c' }, { response: said })
    const sha256 = createHash('sha256').update(said).digest('hex')
    const path = `evidence/${sha256}`
    expect(last()).toEqual({
      separation: 'none',
      call: 'c',
      response: { sha256, bytes: Buffer.byteLength(said), path },
    })
    expect(readFileSync(join(directory, path), 'utf8')).toBe(said)
    expect(statSync(join(directory, path)).mode & 0o777).toBe(0o600)
    expect(statSync(join(directory, 'evidence')).mode & 0o777).toBe(0o700)
    expect(text()).not.toContain('xxxxxxxxxxxxxxxxxxxx')
  })

  test('that can’t be kept beside the journal is no evidence, so nothing is recorded (MP-FH-010)', async () => {
    await writeFile(join(directory, 'evidence'), 'in the way')
    const { head } = journal
    await expect(recorder.record('call.intent', {}, { request: json(cap + 1) })).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
      message: expect.stringContaining('so nothing is called'),
    })
    expect(journal.head).toEqual(head)
    expect(folded).toEqual([])
    await rm(join(directory, 'evidence'))
    await mkdir(join(directory, 'evidence'), { mode: 0o700 })
    await recorder.record('call.intent', {}, { request: json(cap + 1) })
    expect(journal.head.seq).toBeGreaterThan(head.seq)
  })

  test('that can’t be kept leaves no draft, which would take the room that others’ records need', async () => {
    const said = json(cap + 1)
    const taken = join(directory, 'evidence', createHash('sha256').update(said).digest('hex'))
    await mkdir(taken, { recursive: true }) // no file takes the name of a folder
    await expect(recorder.record('call.intent', {}, { request: said })).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
      message: expect.stringContaining('EISDIR'),
    })
    expect(readdirSync(join(directory, 'evidence'))).toEqual([basename(taken)])
  })
})

test('drafts of evidence that a killed daemon left are gone with the next start, and nothing else', async () => {
  await using dir = await tempDir()
  const digest = '0a'.repeat(32)
  const draft = draftOf(digest)
  const evidence = join(dir.path, 'journal', 'evidence')
  mkdirSync(join(evidence, `${draft}.1`), { recursive: true })
  for (const name of [draft, digest, '.mine', `.${digest}`]) await writeFile(join(evidence, name), '')
  await using _keeping = counting(join(dir.path, 'journal'), Buffer.alloc(32, 1)).keeping
  expect(readdirSync(evidence).sort()).toEqual([digest, '.mine', `.${digest}`, `${draft}.1`].sort())
})

test.runIf(isRoot)('one that can’t be removed keeps none of the others', async () => {
  await using dir = await tempDir()
  const evidence = join(dir.path, 'evidence')
  mkdirSync(evidence)
  const drafts = ['0a', '0b', '0c'].map((digit) => draftOf(digit.repeat(32)))
  for (const name of drafts) await writeFile(join(evidence, name), '')
  const [first = ''] = readdirSync(evidence)
  execFileSync('mount', ['--bind', join(evidence, first), join(evidence, first)]) // busy, for everybody
  try {
    removeDrafts(dir.path)
    expect(readdirSync(evidence)).toEqual([first])
  } finally {
    execFileSync('umount', [join(evidence, first)])
  }
})

test('at the end what is under way is recorded first, and what is long is refused from then on', async () => {
  const long = [json(cap + 1), json(2_000_000)]
  const recorded = long.map((request) => recorder.record('call.denied', {}, { request }))
  await recorder[Symbol.asyncDispose]()
  const refused = long.map((request) =>
    recorder.record('call.denied', {}, { request }).catch((error: unknown) => error),
  )
  await journal[Symbol.asyncDispose]()
  expect(await Promise.all(recorded)).toHaveLength(2)
  for (const error of await Promise.all(refused))
    expect(error).toMatchObject({
      code: 'ERR_JOURNAL',
      message: expect.stringContaining('is stopping') as string,
    })
  expect(readdirSync(join(directory, 'evidence'))).toHaveLength(2)
})

test('evidence makes no journal’s folder anew where that was moved away', async () => {
  await rename(directory, `${directory}.away`)
  const made = recorder.record('call.intent', {}, { request: json(cap + 1) })
  await expect(made).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
    message: expect.stringContaining('ENOENT'),
  })
  expect(existsSync(directory)).toBe(false)
  await rename(`${directory}.away`, directory)
  await Promise.all([2, 3].map((more) => recorder.record('call.intent', {}, { request: json(cap + more) })))
})

test('no evidence is kept in what takes the place of the journal’s folder meanwhile', async () => {
  for (let turns = 0; turns < 24; turns++) {
    const at = join(folder.path, `journal-${turns}`)
    await using moved = journalIn(at)
    const made = recorderOf(moved, at).record('call.intent', {}, { request: json(cap + 1) })
    const ended = made.catch((error: unknown) => error)
    for (let turn = 0; turn < turns; turn++) await setImmediate()
    renameSync(at, `${at}.away`)
    mkdirSync(at)
    await ended
    expect(readdirSync(at), `after ${turns} turns`).toEqual([])
    const error = await recorderOf(moved, at)
      .record('call.intent', {}, { request: json(cap + 2) })
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'ERR_JOURNAL',
      message: expect.stringContaining('so nothing is called'),
    })
    rmdirSync(at)
    renameSync(`${at}.away`, at)
    await recorderOf(moved, at).record('call.intent', {}, { request: json(cap + 3) })
  }
})

describe('a secret with a known shape', () => {
  const secret = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'
  test.each([
    ['a request', {}, { request: JSON.stringify({ token: secret }) }],
    [
      'a response beside the journal',
      {},
      { response: JSON.stringify({ token: secret, more: 'x'.repeat(cap) }) },
    ],
    ['what is said around them', { reason: `it said ${secret}` }, {}],
  ])('is not kept in %s, and counted', async (_title, body, raw) => {
    await recorder.record('logs.dropped', body, raw)
    const { redacted, response } = last()
    expect(redacted).toBe(1)
    const beside =
      response === undefined ? '' : readFileSync(join(directory, (response as { path: string }).path), 'utf8')
    expect(text() + beside).not.toContain(secret.slice(4, 30))
    expect(text() + beside).toContain('[redacted: a GitHub token]')
    expect(JSON.stringify(folded)).not.toContain(secret)
  })
})

test('records are folded in the order of the journal, before whoever recorded them goes on', async () => {
  const order: string[] = []
  const known = beginning.seq
  await Promise.all(
    (['hold.placed', 'hold.released', 'trust.reset'] as const).map((type) =>
      recorder
        .record(type, {})
        .then(() => order.push(`${type} after ${folded.map((one) => one.type).join(' ')}`)),
    ),
  )
  const all = 'hold.placed hold.released trust.reset'
  expect(order).toEqual(all.split(' ').map((type) => `${type} after ${all}`))
  expect(folded.map(({ seq }) => seq - known)).toEqual([2, 3, 4])
})

describe('the records of a call', () => {
  const token = `ghp_${'a1B2'.repeat(9)}`
  const peer = { uid: 1000, gid: 1000, pid: 1 }
  const target = (identity: string): Target => ({
    server: 's',
    kind: 'tool',
    subject: 't',
    identity,
    principal: '1000',
    peer,
    trust_epoch: 3,
  })
  const basis = (reason: string): Basis => ({
    session: 's-1',
    declaration: 1,
    policy: 'p',
    rule: 'rules[0]',
    reason,
    trust: 'trusted',
  })
  const record = <T>(write: (value: T, told: Told) => void, value: T): Promise<unknown> =>
    new Promise((durable, failed) => write(value, { durable, failed }))
  const digests = { argumentsDigest: 'a'.repeat(64), bytesDigest: 'b'.repeat(64) }
  const call = 'c-1' as CallId

  test.each([
    ['nothing said of a lineage', null, 'because'],
    ['a lineage', 'from here', 'because'],
    ['a secret in the lineage and in what its decision stood on', token, `because of ${token}`],
  ])('hold in an intent, each once: %s', async (_title, lineage, reason) => {
    const about = { target: target('s/t@1#1'), basis: basis(reason) }
    const intent = {
      call,
      about,
      ...digests,
      permit: 'p-1',
      approval: null,
      lineage,
      id: null,
      foreseen: null,
      request: '{}',
    }
    const hidden = (said: string | null): string | null =>
      said?.replace(token, '[redacted: a GitHub token]') ?? null
    for (let n = 0; n < 2; n++) {
      await record<Intent>((value, told) => recorder.intent(value, told), intent)
      expect(last()).toEqual({
        separation: 'none',
        call: 'c-1',
        permit: 'p-1',
        approval: null,
        arguments_digest: digests.argumentsDigest,
        bytes_digest: digests.bytesDigest,
        ...about.target,
        ...about.basis,
        reason: hidden(reason),
        lineage: hidden(lineage),
        ...(lineage === token ? { redacted: 2 } : {}),
        request: '{}',
      })
    }
  })

  test.each([
    ['nothing said of it', null, 's/t@1#1'],
    ['a word', 'as it was', 's/t@1#1'],
    ['a secret in the word, and a tool that is called like one', `it was ${token}`, `s/${token}@1#1`],
  ])('hold in an outcome, each once: %s', async (_title, detail, identity) => {
    const of = target(identity)
    const { server, kind, subject } = of
    const admission = { call, permit: 'p-1', intent: 7, target: of, server, kind, subject, trustEpoch: 3 }
    const outcome = { kind: 'result', durationMs: 1.5, bytes: '{}', detail } as const
    const hidden = (said: string | null): string | null =>
      said?.replace(token, '[redacted: a GitHub token]') ?? null
    for (let n = 0; n < 2; n++) {
      const ended = { admission: admission as Admission, outcome, used: { exposed: false } }
      await record<Ended>((value, told) => recorder.outcome(value, told), ended)
      expect(last()).toEqual({
        separation: 'none',
        call: 'c-1',
        intent: 7,
        permit: 'p-1',
        outcome: 'result',
        duration_ms: 1.5,
        ...of,
        detail: hidden(detail),
        exposed: false,
        ...(identity === 's/t@1#1' ? {} : { redacted: 1 }),
        response: '{}',
      })
    }
  })
})
