// Followers of the journal are told of what they asked for, all of it once and in order, and what they do costs little.
import { readFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { listSegments, segmentPath } from '../../src/journal/segments.ts'
import { auditMethods } from '../../src/daemon/methods/audit-methods.ts'
import type { MethodCall } from '../../src/daemon/methods/methods.ts'
import type { Notifier } from '../../src/rpc/answering.ts'
import type { RecordType } from '../../src/schema/record-type.ts'
import type { AuditQuery, AuditRecord } from '../../src/rpc/governed.ts'
import { clockStood } from '../support/clock-stood.ts'
import { eventually } from '../support/eventually.ts'
import { type Governed, governanceDefaults, governed } from '../support/governance.ts'
import { notifierTo } from '../support/notifier.ts'
import { tempDir } from '../support/temp-dir.ts'

const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

const methodsOf = ({ governance, directory, policy }: Governed) =>
  auditMethods({ governance, directory, policy, key: new Uint8Array(32) })

interface Follower extends AsyncDisposable {
  readonly seq: number
  /** What it was answered before it was told anything */
  readonly past: readonly AuditRecord[]
  /** What each write to it said */
  readonly writes: readonly (readonly AuditRecord[])[]
  readonly told: readonly AuditRecord[]
  /** Rejects with why it is told no more */
  readonly ended: Promise<void>
}

/** Follows from now on; `read` is how long it takes to read what is written at once. */
async function follow(
  methods: ReturnType<typeof methodsOf>,
  query: AuditQuery = {},
  read: () => Promise<void> = () => Promise.resolve(),
): Promise<Follower> {
  const [over, writes] = [new AbortController(), [] as AuditRecord[][]]
  const pass = async (lines: string): Promise<void> => {
    const said = lines.trimEnd().split('\n')
    writes.push(said.map((line) => (JSON.parse(line) as { params: AuditRecord }).params))
    await read()
  }
  const stream = notifierTo(over.signal, pass)
  const tasks: Promise<void>[] = []
  const call = {
    signal: over.signal,
    afterReply: (task: (stream: Notifier) => Promise<void>) => tasks.push(task(stream)),
  } as unknown as MethodCall
  const { head, records } = await methods['audit/query']({ limit: 1, ...query, follow: true }, call)
  const ended = tasks[0] ?? Promise.resolve()
  ended.catch(() => undefined) // for whoever asks
  return {
    ended,
    seq: head.seq,
    past: records,
    writes,
    get told() {
      return writes.flat()
    },
    async [Symbol.asyncDispose]() {
      over.abort(new Error('over'))
      await Promise.allSettled(tasks)
    },
  }
}

const note = (
  { governance }: Governed,
  body: Readonly<Record<string, unknown>> = {},
  type: RecordType = 'logs.dropped',
) => governance.recorder.record(type, body)
const notes = (at: Governed, count: number, body?: Readonly<Record<string, unknown>>) =>
  Promise.all(Array.from({ length: count }, () => note(at, body)))
const upTo = (from: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, n) => from + 1 + n)
const seqs = (records: readonly AuditRecord[]): readonly number[] => records.map(({ seq }) => seq)

test('what is written to the journal at once is told in one write', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  await using follower = await follow(methodsOf(at))
  await notes(at, 100)
  await eventually(() => follower.told.length === 100)
  expect(follower.writes).toHaveLength(1)
  expect(seqs(follower.told)).toEqual(upTo(follower.seq, 100))
})

test('many who are up with the journal are told of what is new without a look into its files', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const methods = methodsOf(at)
  await using all = new AsyncDisposableStack()
  const followers = await Promise.all(Array.from({ length: 20 }, async () => all.use(await follow(methods))))
  const before = bytesRead()
  for (let n = 0; n < 30; n += 1) {
    await notes(at, 10, { text: 'x'.repeat(1000) })
    await setImmediate()
  }
  await eventually(() => followers.every(({ told }) => told.length === 300))
  // For each of them 300 kB would have to be read.
  expect(bytesRead() - before).toBeLessThan(1_000_000)
  for (const { seq, told } of followers) expect(seqs(told)).toEqual(upTo(seq, 300))
})

test.each<[string, AuditQuery]>([
  ['all', {}],
  ['those of a type', { type: 'logs.*' }],
  ['those of a server', { server: 'a' }],
  ['those of a call', { call: 'c-1' }],
])('%s are told as they are found in the files, from memory and to a slow reader', async (_, query) => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const methods = methodsOf(at)
  const gate = Promise.withResolvers<void>()
  await using quick = await follow(methods, query)
  await using slow = await follow(methods, query, () => gate.promise)
  for (let n = 0; n < 60; n += 1) {
    const text = `é }}\n"} ${'ü'.repeat(n % 20 === 0 ? 40_000 : 5)}`
    await Promise.all([
      note(at, { server: 'a', call: 'c-1', text }),
      note(at, { identity: 'a/b@1#1', text }, 'hold.placed'),
      note(at, { server: 'b', call: `c-${n}`, text }),
    ])
  }
  const answer = await methods['audit/query']({ ...query, after: quick.seq, limit: 1000, from: 'oldest' }, {
    signal: new AbortController().signal,
  } as MethodCall)
  expect(answer.records.length).toBeGreaterThan(50)
  gate.resolve()
  for (const follower of [quick, slow]) {
    await eventually(() => follower.told.length >= answer.records.length)
    expect(follower.told).toEqual(answer.records)
  }
})

test('what is written while the answer to a follower waits for its turn is told once', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const methods = methodsOf(at)
  await notes(at, 2000)
  const { signal } = new AbortController()
  const others = Array.from({ length: 4 }, async () =>
    methods['audit/query']({ limit: 1000 }, { signal } as MethodCall),
  )
  const following = follow(methods, { limit: 1000 })
  for (let n = 0; n < 200; n += 1) {
    await note(at)
    await setImmediate()
  }
  await using follower = await following
  await Promise.all(others)
  await note(at, {}, 'runs.pruned')
  await eventually(() => follower.told.at(-1)?.type === 'runs.pruned')
  const all = seqs([...follower.past, ...follower.told])
  expect(all).toEqual(upTo((all[0] ?? 0) - 1, all.length))
  expect(all.at(-1)).toBe(at.governance.journal.head.seq)
})

test('over many segments nothing is missing, nor told twice, at any pace', async () => {
  const journal = { ...governanceDefaults.journal, segmentBytes: 20_000 }
  await using at = await governed({ rules: [], emit: () => undefined, settings: { journal } })
  const methods = methodsOf(at)
  await using quick = await follow(methods)
  await using slow = await follow(methods, {}, () => setImmediate())
  for (let n = 0; n < 100; n += 1) {
    await notes(at, 1 + (n % 7), { text: 'x'.repeat(n * 30) })
    if (n % 3 === 0) await setImmediate()
  }
  const count = at.governance.journal.head.seq - quick.seq
  expect(new Set(at.records().map(({ segment }) => segment)).size).toBeGreaterThan(10)
  await eventually(() => [quick, slow].every(({ told }) => told.length >= count))
  for (const { told } of [quick, slow]) expect(seqs(told)).toEqual(upTo(quick.seq, count))
})

test.each<[string, AuditQuery]>([
  ['all', {}],
  ['those of a type', { type: 'logs.dropped' }],
])('of %s nothing is passed over while the journal is not where it was written', async (_, query) => {
  const journal = { ...governanceDefaults.journal, segmentBytes: 20_000 }
  await using at = await governed({ rules: [], emit: () => undefined, settings: { journal } })
  const gate = Promise.withResolvers<void>()
  await using follower = await follow(methodsOf(at), query, () => gate.promise)
  await note(at)
  await eventually(() => follower.told.length === 1)
  // It reads what it has while segments come that it must look up.
  for (let n = 0; n < 30; n += 1) await note(at, { text: 'x'.repeat(2000) })
  renameSync(at.directory, `${at.directory}.away`)
  gate.resolve()
  for (let n = 0; n < 10; n += 1) await setImmediate()
  renameSync(`${at.directory}.away`, at.directory)
  await note(at)
  await eventually(() => follower.told.at(-1)?.seq === at.governance.journal.head.seq)
  expect(follower.told.filter(({ type }) => type === 'logs.dropped')).toHaveLength(32)
  const { seq, told } = follower
  if (query.type === undefined) expect(seqs(told)).toEqual(upTo(seq, told.length))
})

/** A follower that has read one record, and all that it is to be told next stands in segments that it must look up. */
async function behind(at: Governed, query: AuditQuery) {
  const gate = Promise.withResolvers<void>()
  const follower = await follow(methodsOf(at), query, () => gate.promise)
  await note(at)
  await eventually(() => follower.told.length === 1)
  for (let n = 0; n < 700; n += 1) await note(at, { text: 'x'.repeat(2000) })
  return { follower, read: gate.resolve }
}

const inSegments = () => ({ journal: { ...governanceDefaults.journal, segmentBytes: 20_000 } })

test.each<[string, AuditQuery]>([
  ['all', {}],
  ['those of a type', { type: 'logs.dropped' }],
])(
  'of %s, a record that is no record any more is said to be lacking, and not passed over',
  async (_, query) => {
    await using at = await governed({ rules: [], emit: () => undefined, settings: inSegments() })
    const { follower, read } = await behind(at, query)
    await using _follower = follower
    const [damaged] = at.records().filter(({ seq }) => seq === follower.seq + 20)
    const path = segmentPath(at.directory, damaged?.segment ?? 0)
    const lines = readFileSync(path, 'utf8').split('\n')
    const broken = lines.map((line) => (line.startsWith(`{"seq":${damaged?.seq},`) ? 'no record' : line))
    writeFileSync(path, broken.join('\n'))
    read()
    await expect(follower.ended).rejects.toMatchObject({
      code: 'ERR_JOURNAL_CORRUPT',
      message: expect.stringContaining(`record ${damaged?.seq} was written`),
    })
    const { told } = follower
    expect(told.at(-1)?.seq).toBe(follower.seq + 19)
    if (query.type === undefined) expect(seqs(told)).toEqual(upTo(follower.seq, 19))
  },
)

test('while nobody can look into the journal its followers wait, and where that stays so they are told', async () => {
  await using at = await governed({ rules: [], emit: () => undefined, settings: inSegments() })
  const { directory } = at
  const followers = [await behind(at, {}), await behind(at, {})] as const
  const [mended, left] = followers
  await using _one = mended.follower
  await using _other = left.follower
  const away = (): void => {
    renameSync(directory, `${directory}.away`)
    symlinkSync(directory, directory)
  }
  const back = (): void => {
    rmSync(directory)
    renameSync(`${directory}.away`, directory)
  }
  const { seq } = at.governance.journal.head
  away()
  mended.read()
  for (let n = 0; n < 10; n += 1) await setImmediate()
  back()
  await eventually(() => mended.follower.told.at(-1)?.seq === seq)
  expect(seqs(mended.follower.told)).toEqual(upTo(mended.follower.seq, seq - mended.follower.seq))
  away()
  left.read()
  await expect(left.follower.ended).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
    message: expect.stringContaining(`${directory} (ELOOP)`),
  })
  back()
})

test('what keep_days lets go of before the oldest segment is no gap', async () => {
  await using state = await tempDir()
  clockStood(join(state.path, 'clock'))
  const settings = { journal: { ...inSegments().journal, keepDays: 1 } }
  await using at = await governed({ rules: [], emit: () => undefined, settings, state: state.path })
  const { follower, read } = await behind(at, {})
  await using _follower = follower
  const old = at.records().find(({ seq }) => seq > follower.seq + 40)?.segment ?? 0
  const last = at.records().findLast(({ segment }) => segment === old)?.seq ?? 0
  for (const segment of listSegments(at.directory))
    if (segment <= old) utimesSync(segmentPath(at.directory, segment), 1, 1)
  for (let n = 0; n < 20; n += 1) await note(at, { text: 'x'.repeat(2000) })
  await eventually(() => listSegments(at.directory)[0] === old + 1)
  read()
  const { seq } = at.governance.journal.head
  await eventually(() => follower.told.at(-1)?.seq === seq)
  expect(seqs(follower.told.slice(1))).toEqual(upTo(last, seq - last))
})

test('what went before the oldest segment, and nobody let go of, is said to be lacking', async () => {
  await using at = await governed({ rules: [], emit: () => undefined, settings: inSegments() })
  const { follower, read } = await behind(at, {})
  await using _follower = follower
  for (const segment of listSegments(at.directory).slice(0, 10)) rmSync(segmentPath(at.directory, segment))
  read()
  await expect(follower.ended).rejects.toMatchObject({
    code: 'ERR_JOURNAL_CORRUPT',
    message: expect.stringContaining(`record ${follower.seq + 2} was written`),
  })
  expect(seqs(follower.told)).toEqual([follower.seq + 1])
})

test('who reads from the oldest on is told of all behind what was answered', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  await notes(at, 50)
  await notes(at, 50, { server: 'a' })
  const asking = (query: AuditQuery) => follow(methodsOf(at), { from: 'oldest', after: 10, ...query })
  await using all = await asking({ limit: 20 })
  await using some = await asking({ limit: 20, server: 'a' })
  await using whole = await asking({ limit: 1000 })
  await note(at, { server: 'a' })
  const { seq } = at.governance.journal.head
  const own = at.records().flatMap((one) => (Object(one.body).server === 'a' ? [one.seq] : []))
  const every = upTo(10, seq - 10)
  for (const [follower, expected] of [
    [all, every],
    [some, own],
    [whole, every],
  ] as const) {
    await eventually(() => follower.told.at(-1)?.seq === seq)
    expect(seqs([...follower.past, ...follower.told])).toEqual(expected)
  }
})

test('who follows with a number that was there is not told of it again', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { seq } = at.governance.journal.head
  await using one = await follow(methodsOf(at), { seq })
  await using all = await follow(methodsOf(at))
  await note(at)
  await eventually(() => all.told.length === 1)
  await note(at)
  await eventually(() => all.told.length === 2)
  expect(one.told).toEqual([])
})
