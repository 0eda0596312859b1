// When the record of how a call ended is made: with the next call's, where it changes nothing, and else at once.
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Ended, Recorder, Told } from '../../../src/call/ports.ts'
import { auditMethods } from '../../../src/daemon/methods/audit-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { Outcomes } from '../../../src/daemon/governance/outcomes.ts'
import { SallyportError } from '../../../src/errors.ts'
import { loadKey } from '../../../src/journal/key.ts'
import type { CallId } from '../../../src/lib/ids.ts'
import type { Admission, Outcome } from '../../../src/schema/governor.ts'
import { allowAll } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { governed, type Governed } from '../../support/governance.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { tempDir } from '../../support/temp-dir.ts'

const server = serverSettings('echo.mjs', { acceptance: 'manual' })
const by = { by: '0', peer: { uid: 0, gid: 0, pid: 1 } }
const never = { signal: new AbortController().signal }
const good: Outcome = { kind: 'result', durationMs: 1, bytes: '{}', detail: null }
const bad: Outcome = { ...good, kind: 'tool-error' }

/** A governor whose tool `one` was called so often with a good end; two make it trusted. */
async function stage(calls: number, state?: string): Promise<Governed> {
  const trust = { provisionalAfter: 1, trustedAfter: 2, contaminate: 'tool' } as const
  const at = await governed({
    servers: [server],
    rules: allowAll,
    emit: () => undefined,
    settings: { trust },
    ...(state === undefined ? {} : { state }),
  })
  const tools = new Map([['one', { name: 'one', inputSchema: { type: 'object' } }]])
  await at.governance.surfaces.accept(
    { server, tools, saidVersion: null, rest: {} },
    { ...by, declared: null, declaredVersion: null, only: null },
  )
  for (let n = 1; n <= calls; n++) {
    at.policy.governor.settle(await admitted(at, `c-before-${n}`), good)
    await eventually(() => at.governance.ledger.trust('fixture', 'one').evidence === n)
  }
  return at
}

const admitted = ({ policy }: Governed, call: string) =>
  policy.governor.admit(
    {
      call: call as CallId,
      kind: 'tool',
      server,
      instance: null,
      subject: 'one',
      arguments: {},
      bytes: '{"name":"one","arguments":{}}',
      evidence: '{"name":"one","arguments":{}}',
      principal: '0',
      peer: by.peer,
      session: 's',
      lineage: null,
      id: null,
      obstacle: null,
      comparing: () => null,
      isPart: false,
    },
    never,
  )

/** What is on record of calls, oldest first, by type and call; `+` before what ends no batch. */
const recorded = (at: Governed): readonly string[] =>
  at
    .records()
    .filter(({ type }) => type.startsWith('call.'))
    .map(({ type, body, mac }) => `${mac === null ? '+' : ''}${type} ${(body as { call: string }).call}`)

test('a result of a trusted tool is written in one batch with the next intent, before it, turns later', async () => {
  await using at = await stage(2)
  const isTogether = async (n: number): Promise<boolean> => {
    at.policy.governor.settle(await admitted(at, `c-${n}`), good)
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    await admitted(at, `c-${n}-next`)
    const last = recorded(at).slice(-3)
    return last.join() === [`call.intent c-${n}`, `+call.outcome c-${n}`, `call.intent c-${n}-next`].join()
  }
  // A few milliseconds may be over at any moment, but not each time.
  const seen: boolean[] = []
  for (let n = 0; n < 50 && !seen.includes(true); n++) seen.push(await isTogether(n))
  expect(seen).toContain(true)
})

test('with no call after it, it is written by itself', async () => {
  await using at = await stage(2)
  at.policy.governor.settle(await admitted(at, 'c-1'), good)
  await eventually(() => recorded(at).at(-1) === 'call.outcome c-1')
})

test('whoever asks for what is settled finds it on record', async () => {
  await using at = await stage(2)
  at.policy.governor.settle(await admitted(at, 'c-1'), good)
  await at.governance.governors.settled()
  expect(recorded(at).at(-1)).toBe('call.outcome c-1')
  expect(at.governance.ledger.trust('fixture', 'one').evidence).toBe(3)
})

test('the end of the daemon leaves none behind', async () => {
  await using state = await tempDir()
  const at = await stage(2, state.path)
  at.policy.governor.settle(await admitted(at, 'c-1'), good)
  await at[Symbol.asyncDispose]()
  expect(recorded(at).at(-1)).toBe('call.outcome c-1')
})

test.for([
  ['a result of a tool that has more to earn', 1, good],
  ['anything but a result', 2, bad],
] as const)('%s is written before the event loop turns again', async ([, calls, outcome]) => {
  await using at = await stage(calls)
  at.policy.governor.settle(await admitted(at, 'c-1'), outcome)
  await new Promise(setImmediate)
  expect(recorded(at).at(-1)).toBe('call.outcome c-1')
})

test('whoever asks for what is settled finds it though its answer lies beside the journal', async () => {
  await using at = await stage(2)
  const long = { ...good, bytes: JSON.stringify('x'.repeat(100_000)) }
  at.policy.governor.settle(await admitted(at, 'c-long'), long)
  at.policy.governor.settle(await admitted(at, 'c-short'), good)
  await at.governance.governors.settled()
  expect(recorded(at).filter((one) => one.endsWith('call.outcome c-long'))).toHaveLength(1)
})

describe('what the journal does not take', () => {
  const outcomesOf = (at: Governed, call: string) =>
    at
      .records()
      .filter(({ type, body }) => type === 'call.outcome' && (body as { call: string }).call === call)
      .map(({ body }) => body as { outcome: string; detail: string | null; response?: unknown })

  test.for([
    ['a plain result', 2, good],
    ['a result of a tool that has more to earn', 1, good],
    ['a tool error', 2, bad],
  ] as const)('is owed: %s', async ([, calls, outcome]) => {
    await using at = await stage(calls)
    const admission = await admitted(at, 'c-1')
    const away = `${at.directory}.away`
    await rename(at.directory, away)
    at.policy.governor.settle(admission, outcome)
    await at.governance.governors.settled()
    await expect(admitted(at, 'c-never')).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
    await rename(away, at.directory)
    await admitted(at, 'c-2')
    const order = recorded(at).slice(-2)
    expect(order).toEqual(['call.outcome c-1', 'call.intent c-2'])
    expect(outcomesOf(at, 'c-1')).toMatchObject([{ outcome: outcome.kind, response: '{}' }])
    expect(recorded(at).join()).not.toContain('c-never')
  })

  test('is recorded without another call, once the disk is mended', async () => {
    await using at = await stage(2)
    const admission = await admitted(at, 'c-1')
    const away = `${at.directory}.away`
    await rename(at.directory, away)
    at.policy.governor.settle(admission, good)
    await at.governance.governors.settled()
    await rename(away, at.directory)
    await eventually(() => recorded(at).at(-1) === 'call.outcome c-1')
  })

  test('is in what a verification reads, once the disk is mended', async () => {
    await using at = await stage(2)
    const { governance, directory } = at
    const key = await loadKey(`${directory}.key`, directory)
    const policy = { settings: { servers: new Map() } as never }
    const methods = auditMethods({ governance, directory, key, policy })
    const admission = await admitted(at, 'c-1')
    await rename(directory, `${directory}.away`)
    at.policy.governor.settle(admission, good)
    await governance.governors.settled()
    await rename(`${directory}.away`, directory)
    // An operator who is gone by then waits for no thread, but for the record.
    const gone = { signal: AbortSignal.abort(new Error('gone')) } as MethodCall
    await expect(methods['audit/verify']({}, gone)).rejects.toThrow('gone')
    expect(recorded(at).at(-1)).toBe('call.outcome c-1')
    expect(await methods['audit/verify']({}, never as MethodCall)).toMatchObject({ ok: true })
  })

  test('keeps calls back though it is but an answer that finds no room beside the journal', async () => {
    await using at = await stage(2)
    const long = { ...good, bytes: JSON.stringify('x'.repeat(100_000)) }
    await writeFile(join(at.directory, 'evidence'), '')
    at.policy.governor.settle(await admitted(at, 'c-1'), long)
    await at.governance.governors.settled()
    await expect(admitted(at, 'c-never')).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
    await rm(join(at.directory, 'evidence'))
    await admitted(at, 'c-2')
    expect(outcomesOf(at, 'c-1')).toMatchObject([{ outcome: 'result', response: { bytes: 100_002 } }])
  })

  test('is kept without its answer where all of them are too long', async () => {
    const lines: Ended[] = []
    let isBroken = true
    const failure = new SallyportError('ERR_JOURNAL', 'broken')
    const outcome = (ended: Ended, told: Told): void => {
      if (!isBroken) lines.push(ended)
      queueMicrotask(() => (isBroken ? told.failed(failure) : told.durable({ seq: 1 })))
    }
    const outcomes = new Outcomes({ outcome } as Recorder, () => undefined, 1000)
    const ended = (bytes: string): Ended => ({
      admission: {} as Admission,
      outcome: { ...good, bytes },
      used: null,
    })
    for (const bytes of ['a'.repeat(600), 'b'.repeat(600), 'c']) outcomes.add(ended(bytes))
    await outcomes.settled()
    expect(await outcomes.pay()).toBe(failure)
    isBroken = false
    expect(await outcomes.pay()).toBe(null)
    expect(lines.map(({ outcome: { bytes } }) => bytes?.[0] ?? null)).toEqual(['a', null, 'c'])
    expect(lines[1]?.outcome.detail).toContain('600 characters was not kept')
  })

  test('is recorded without an answer that nobody can look through, and calls go on', async () => {
    const lines: Ended[] = []
    const outcome = (ended: Ended, told: Told): void => {
      const failure = ended.outcome.bytes === null ? null : SallyportError.from(new RangeError('too much'))
      if (failure === null) lines.push(ended)
      queueMicrotask(() => (failure === null ? told.durable({ seq: 1 }) : told.failed(failure)))
    }
    const outcomes = new Outcomes({ outcome } as Recorder, () => undefined)
    outcomes.add({ admission: {} as Admission, outcome: good, used: null })
    await outcomes.settled()
    expect(await outcomes.pay()).toBe(null)
    expect(lines).toMatchObject([{ outcome: { bytes: null, detail: expect.stringContaining('too much') } }])
  })
})
