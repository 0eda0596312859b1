// Records of calls are put together from parts, and say what they would say in one piece.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Durable, JournalRecorder } from '../../src/daemon/recorder.ts'
import { redactor } from '../../src/daemon/redactor.ts'
import { Journal } from '../../src/journal/journal.ts'
import { segmentPath } from '../../src/journal/segments.ts'
import { verifyJournal } from '../../src/journal/verify.ts'
import { tempDir } from '../support/temp-dir.ts'

const token = `ghp_${'a1B2'.repeat(9)}`
const key = new Uint8Array(32).fill(7)

async function stage(): Promise<
  AsyncDisposable & {
    recorder: JournalRecorder
    folded: Durable[]
    bodies: () => unknown[]
    directory: string
  }
> {
  const dir = await tempDir()
  const directory = join(dir.path, 'journal')
  const options = { directory, key, daemon: 'd-1', segmentBytes: 1 << 20, replay: () => undefined }
  const journal = Journal.open({ ...options, durability: 'write' })
  const folded: Durable[] = []
  const recorder = new JournalRecorder({
    journal,
    directory,
    evidenceBytes: 1000,
    isSynced: false,
    redactor,
    separation: 'none',
    folded: (record) => folded.push(record),
  })
  return {
    recorder,
    folded,
    directory,
    bodies: () =>
      readFileSync(segmentPath(directory, 1), 'utf8')
        .trimEnd()
        .split('\n')
        .slice(1)
        .map((line) => (JSON.parse(line) as { body: unknown }).body),
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]()
      await dir[Symbol.asyncDispose]()
    },
  }
}

const target = Object.freeze({ server: 'files', peer: { uid: 1 } })
const own = { call: 'c-1', intent: 7, approval: null }

test('a record of a call holds every part of it, as do records that share one', async () => {
  await using at = await stage()
  const raw = { request: '{"a":"é\\n"}' }
  for (const lineage of [null, 'task "7"\n'])
    await at.recorder.recordCall('call.intent', { about: [target], own, said: { lineage }, raw })
  const body = { ...own, ...target }
  expect(at.bodies()).toEqual([
    { separation: 'none', ...body, lineage: null, ...raw },
    { separation: 'none', ...body, lineage: 'task "7"\n', ...raw },
  ])
  expect(at.folded.map((record) => record.body)).toEqual([
    { ...body, lineage: null },
    { ...body, lineage: 'task "7"\n' },
  ])
  expect(verifyJournal(at.directory, key).ok).toBe(true)
})

test('a secret is in no part of a record of a call, however often the part is used, nor in what is folded', async () => {
  await using at = await stage()
  const leaky = Object.freeze({ subject: token })
  const record = {
    about: [leaky],
    own,
    said: { detail: token },
    raw: { response: `{"a":"${token}"}` },
  } as const
  await at.recorder.recordCall('call.outcome', record)
  await at.recorder.recordCall('call.outcome', record)
  expect(JSON.stringify([at.bodies(), at.folded])).not.toContain(token)
  expect(at.bodies()).toMatchObject([{ redacted: 3 }, { redacted: 3 }])
})

test('a long answer lies beside the record of its call', async () => {
  await using at = await stage()
  const raw = { response: JSON.stringify('x'.repeat(2000)) }
  await at.recorder.recordCall('call.outcome', { about: [target], own, said: { detail: null }, raw })
  const [body] = at.bodies() as [{ response: { path: string; bytes: number } }]
  expect(body.response.bytes).toBe(2002)
  expect(readFileSync(join(at.directory, body.response.path), 'utf8')).toBe(raw.response)
})
