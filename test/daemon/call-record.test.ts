// Records of calls are put together from parts, and say what they would say in one piece.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Told } from '../../src/call/ports.ts'
import { noTurn } from '../../src/call/turns.ts'
import type { CallId } from '../../src/lib/ids.ts'
import type { Admission } from '../../src/schema/governor.ts'
import { Confided } from '../../src/credentials/confided.ts'
import { type Durable, JournalRecorder } from '../../src/daemon/governance/recorder.ts'
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
    confided: new Confided(),
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

const target = {
  server: 'files',
  kind: 'tool',
  subject: 'read',
  identity: 'files/read@1#1',
  principal: '1000',
  peer: { uid: 1000, gid: 1000, pid: 1 },
  trust_epoch: 0,
} as const
const basis = {
  session: 's-1',
  declaration: 1,
  policy: 'v1',
  rule: null,
  reason: 'as it is',
  trust: 'untrusted',
}
const intent = {
  call: 'c-1' as CallId,
  about: { target, basis },
  argumentsDigest: 'aa',
  bytesDigest: 'bb',
  permit: 'p-1',
  approval: null,
  lineage: null,
  id: null,
  foreseen: null,
  request: '{"a":"é\\n"}',
}
const admission: Admission = {
  call: intent.call,
  instance: null,
  server: 'files',
  kind: 'tool',
  subject: 'read',
  identity: target.identity,
  permit: 'p-1',
  intent: 7,
  approval: null,
  policyVersion: 'v1',
  trustEpoch: 0,
  repeats: false,
  principal: '1000',
  peer: target.peer,
  target,
  lineage: null,
  process: null,
  refuse: null,
  comparing: () => null,
  secrets: null,
  turn: noTurn,
}
const outcome = { kind: 'result', durationMs: 1.5, detail: null, bytes: '{}' } as const

/** Resolves once it is durable. */
const recorded = (begin: (told: Told) => void): Promise<unknown> =>
  new Promise((durable, failed) => begin({ durable, failed }))

test('a record of a call holds every part of it, as do records that share one', async () => {
  await using at = await stage()
  const changes = [{}, { lineage: 'task "7"\n', approval: 'a"1', foreseen: { exposed: false } }]
  for (const change of changes) await recorded((told) => at.recorder.intent({ ...intent, ...change }, told))
  const ended = { admission, outcome, used: { attribution: 'call' } }
  await recorded((told) => at.recorder.outcome(ended, told))
  const ids = { separation: 'none', call: 'c-1', permit: 'p-1', ...target }
  const said = { ...ids, ...basis, arguments_digest: 'aa', bytes_digest: 'bb', request: intent.request }
  expect(at.bodies()).toEqual([
    { ...said, approval: null, lineage: null },
    { ...said, approval: 'a"1', lineage: 'task "7"\n', exposed: false },
    {
      ...ids,
      intent: 7,
      outcome: 'result',
      duration_ms: 1.5,
      detail: null,
      response: '{}',
      attribution: 'call',
    },
  ])
  expect(verifyJournal(at.directory, key).ok).toBe(true)
})

test('what is folded of a call is what its record says', async () => {
  await using at = await stage()
  await recorded((told) => at.recorder.intent(intent, told))
  await recorded((told) => at.recorder.outcome({ admission, outcome, used: null }, told))
  const [begun, ended] = at.folded.map(({ body }) => body)
  expect(begun).toEqual({ ...target, call: 'c-1', permit: 'p-1' })
  expect(ended).toMatchObject({ call: 'c-1', server: 'files', outcome: 'result', trust_epoch: 0 })
  expect(at.bodies()).toMatchObject([begun, ended])
})

test('a secret is in no words of a record of a call, however often they are used, nor in what is folded', async () => {
  await using at = await stage()
  const told = { ...outcome, detail: token, bytes: `{"a":"${token}"}` }
  for (let n = 0; n < 2; n += 1)
    await recorded((done) =>
      at.recorder.outcome({ admission, outcome: told, used: { credentials: [token] } }, done),
    )
  const about = { target, basis: { ...basis, rule: token, reason: token } }
  const said = { lineage: token, foreseen: { credentials: [token] }, request: `{"a":"${token}"}` }
  await recorded((done) => at.recorder.intent({ ...intent, about, ...said }, done))
  expect(JSON.stringify([at.bodies(), at.folded])).not.toContain(token)
  expect(at.bodies()).toMatchObject([{ redacted: 3 }, { redacted: 3 }, { redacted: 5 }])
})

test('a long answer lies beside the record of its call', async () => {
  await using at = await stage()
  const bytes = JSON.stringify('x'.repeat(2000))
  await recorded((told) =>
    at.recorder.outcome({ admission, outcome: { ...outcome, bytes }, used: null }, told),
  )
  const [body] = at.bodies() as [{ response: { path: string; bytes: number } }]
  expect(body.response.bytes).toBe(2002)
  expect(readFileSync(join(at.directory, body.response.path), 'utf8')).toBe(bytes)
})
