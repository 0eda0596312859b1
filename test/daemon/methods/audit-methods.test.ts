// The journal is read as far as somebody takes it up: for a follower that does not read, and for many who ask at once.
import { readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { auditMethods } from '../../../src/daemon/methods/audit-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { loadKey } from '../../../src/journal/key.ts'
import type { Notifier } from '../../../src/rpc/answering.ts'
import { governed } from '../../support/governance.ts'

const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

test('a follower that does not read has little read for it, and misses nothing once it does', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  const tasks: ((stream: Notifier) => Promise<void>)[] = []
  const call = {
    signal: new AbortController().signal,
    afterReply: (task: (typeof tasks)[0]) => tasks.push(task),
  } as unknown as MethodCall
  const { head } = await methods['audit/query']({ follow: true, limit: 1 }, call)
  const text = 'x'.repeat(20_000)
  await Promise.all(Array.from({ length: 600 }, () => governance.recorder.record('logs.dropped', { text })))

  const [reader, first] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const over = new AbortController()
  const told: number[] = []
  const pass = async (lines: Buffer): Promise<void> => {
    first.resolve()
    await reader.promise
    const said = lines.toString().trimEnd().split('\n')
    told.push(...said.map((line) => (JSON.parse(line) as { params: { seq: number } }).params.seq))
    if (told.length === 600) over.abort()
  }
  const notify = (): Promise<void> => Promise.reject(new Error('one by one'))
  const before = bytesRead()
  const done = Promise.all(tasks.map((task) => task({ signal: over.signal, notify, pass })))
  await first.promise
  expect(bytesRead() - before).toBeLessThan(2_000_000)
  reader.resolve()
  await done
  expect(told).toEqual(Array.from({ length: 600 }, (_, n) => head.seq + 1 + n))
})

test('of many answers that are asked for at once a few are put together, and all are given', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  const text = 'x'.repeat(20_000)
  await Promise.all(Array.from({ length: 100 }, () => governance.recorder.record('logs.dropped', { text })))
  const call = { signal: new AbortController().signal } as MethodCall
  const ask = async () => methods['audit/query']({ type: 'logs.dropped' }, call)
  await ask()
  const before = bytesRead()
  const all = Array.from({ length: 40 }, ask)
  await Promise.race(all)
  // One reads two megabytes.
  expect(bytesRead() - before).toBeLessThan(20_000_000)
  for (const { records } of await Promise.all(all)) expect(records).toHaveLength(100)
})

test('of many who follow from the past on a few are looked up for at once, and all are told', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  const text = 'x'.repeat(20_000)
  const asked = { server: 'a' }
  await governance.recorder.record('logs.dropped', asked)
  await Promise.all(Array.from({ length: 100 }, () => governance.recorder.record('logs.dropped', { text })))
  await governance.recorder.record('logs.dropped', asked)
  const over = new AbortController()
  const tasks: ((stream: Notifier) => Promise<void>)[] = []
  const call = {
    signal: over.signal,
    afterReply: (task: (typeof tasks)[0]) => tasks.push(task),
  } as unknown as MethodCall
  for (let n = 0; n < 40; n += 1)
    await methods['audit/query']({ follow: true, from: 'oldest', limit: 1, ...asked }, call)

  const before = bytesRead()
  const told = tasks.map((follow) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const pass = async (): Promise<void> => resolve()
    const stream: Notifier = { signal: over.signal, notify: pass, pass }
    return { promise, ended: follow(stream) }
  })
  await Promise.race(told.map(({ promise }) => promise))
  // For one two megabytes are read.
  expect(bytesRead() - before).toBeLessThan(20_000_000)
  await Promise.all(told.map(({ promise }) => promise))
  over.abort(new Error('over'))
  await Promise.allSettled(told.map(({ ended }) => ended))
})

test('one verification runs at a time: others wait for theirs, and for who is gone none is begun', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const key = await loadKey(`${directory}.key`, directory)
  const methods = auditMethods({ governance, directory, policy, key })
  let [begun, now, most] = [0, 0, 0]
  const count = (worker: Worker): void => {
    begun += 1
    now += 1
    most = Math.max(most, now)
    worker.once('exit', () => (now -= 1))
  }
  process.on('worker', count)
  const gone = new AbortController()
  const asked = [1, 2, 3, 4, 5, 6].map(async (n) => {
    const signal = n % 2 === 0 ? gone.signal : new AbortController().signal
    return methods['audit/verify']({}, { signal } as MethodCall)
  })
  const settled = Promise.allSettled(asked)
  gone.abort(new Error('gone'))
  const ends = (await settled).map((one) => (one.status === 'fulfilled' ? one.value.ok : one.reason.message))
  process.off('worker', count)
  expect(ends).toEqual([true, 'gone', true, 'gone', true, 'gone'])
  expect({ begun, most }).toEqual({ begun: 3, most: 1 })
})

test('an answer that nobody waits for any more is not put together', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  await governance.recorder.record('logs.dropped', {})
  const gone = new AbortController()
  const asked = methods['audit/query']({}, { signal: gone.signal } as MethodCall)
  gone.abort(new Error('gone'))
  await expect(asked).rejects.toThrow('gone')
})

test('a journal that is not where it was written is told as that, and not as one without records', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  const call = { signal: new AbortController().signal } as MethodCall
  const ask = async () => methods['audit/query']({ limit: 1 }, call)
  renameSync(directory, `${directory}.away`)
  await expect(ask()).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
  renameSync(`${directory}.away`, directory)
  expect((await ask()).records).toHaveLength(1)
})

test('a journal that the file system does not let anybody look into is told as that, by name', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  const call = { signal: new AbortController().signal } as MethodCall
  const said = { code: 'ERR_JOURNAL', message: expect.stringContaining(`${directory} (ELOOP)`) }
  renameSync(directory, `${directory}.away`)
  symlinkSync(directory, directory)
  await expect(methods['audit/query']({ limit: 1 }, call)).rejects.toMatchObject(said)
  await expect(methods['audit/verify']({}, call)).rejects.toMatchObject(said)
  rmSync(directory)
  renameSync(`${directory}.away`, directory)
  expect((await methods['audit/query']({ limit: 1 }, call)).records).toHaveLength(1)
})

test.each([
  ['for what there is', { limit: 5 }],
  ['to follow', { follow: true, limit: 5 }],
  ['of one server', { server: 'files' }],
])('a type that no record is ever of is refused by name, asked %s', async (_title, query) => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  const call = {
    signal: new AbortController().signal,
    afterReply: () => expect.unreachable(),
  } as unknown as MethodCall
  for (const [type, said] of [
    ['call.outcom', 'got "call.outcom", expected a type of record; did you mean call.outcome?'],
    ['calls.*', 'got "calls.*", expected a type of record; did you mean call.*?'],
    ['nothing', /^audit\/query: type: got "nothing", expected a type of record: approval\.\*, call\.\*, /],
  ] as const)
    await expect(methods['audit/query']({ ...query, type }, call)).rejects.toMatchObject({
      code: 'ERR_INVALID_PARAMS',
      message: typeof said === 'string' ? `audit/query: type: ${said}` : expect.stringMatching(said),
    })
})

test('a type that this daemon does not know is found where the journal has one of it', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  await governance.journal.append({ type: 'of.another-version', body: '{"says":1}' })
  const call = { signal: new AbortController().signal } as MethodCall
  const { records } = await methods['audit/query']({ type: 'of.another-version' }, call)
  expect(records).toMatchObject([{ body: { says: 1 } }])
})
