// A yes that an operator takes back before its call has a permit: nothing is sent by it.
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { EventLog } from '../../../src/daemon/events.ts'
import { approvalMethods } from '../../../src/daemon/methods/approval-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { reached, stage } from '../../support/changing.ts'
import { eventually } from '../../support/eventually.ts'

const principal = { kind: 'uid', id: '0', attributes: { uid: 0, gid: 0, pid: 1 } } as const
// Of all that a connection offers, an answer takes who gives it.
const operator = { principal, caller: { principal, role: 'operator' } } as unknown as MethodCall

test.each(['once', 'session', 'policy'] as const)(
  'a yes for %s, and a no at once behind it',
  async (scope) => {
    await using at = await stage('over the control socket', { echo: 'ask' })
    const { governance, records } = {
      governance: at.governed.governance,
      records: () => at.governed.records(),
    }
    const methods = approvalMethods({ governance, events: new EventLog() })
    governance.listen()
    const made = at.call('echo', { text: 'x' })
    const id = await eventually(() => governance.approvals.pending()[0]?.id)
    await Promise.all([
      methods['approvals/approve']({ id, scope }, operator),
      methods['approvals/deny']({ id, reason: 'on second thoughts' }, operator),
    ])
    expect(await made).toBe('ERR_APPROVAL_DENIED')
    expect(reached(at)).not.toContain('tools/call')
    expect(governance.approvals.standing()).toEqual([])
    expect(governance.approvals.isGiven(id)).toBe(false)
    const told = records().filter(({ type }) => /^(?:call|approval)[.]/.test(type))
    expect(told.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['approval.granted', 'approval.used', 'approval.revoked', 'call.denied']),
    )
    expect(told.map(({ type }) => type)).not.toContain('call.intent')
    const refusal = told.find(({ type }) => type === 'call.denied')?.body
    expect(refusal).toMatchObject({ reason: expect.stringContaining('on second thoughts') })
  },
)

/** Two equal calls, each of which waits for its own answer. */
async function twoEqual() {
  const at = await stage('over the control socket', { echo: 'ask' })
  const { governance } = at.governed
  governance.listen()
  const made = [at.call('echo', { text: 'x' }), at.call('echo', { text: 'x' })]
  const [yes = '', no = ''] = await eventually(() => {
    const ids = governance.approvals.pending().map(({ id }) => id)
    return ids.length === 2 && ids
  })
  return {
    governance,
    methods: approvalMethods({ governance, events: new EventLog() }),
    made,
    yes,
    no,
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  }
}

test('a no that is being recorded is heard before the yes to an equal question answers it, too', async () => {
  await using it = await twoEqual()
  const { governance, methods, made, yes, no } = it
  const begun = methods['approvals/approve']({ id: yes, scope: 'policy' }, operator)
  // As long as a slow disk takes for a record of it
  const denied = new Promise((resolve, reject) => {
    const { recorder } = governance
    const record = recorder.record.bind(recorder)
    recorder.record = async (...said) => {
      const done = await record(...said)
      if (said[0] === 'approval.denied') await Promise.resolve(begun).then(() => setTimeout(50))
      return done
    }
    Promise.resolve(methods['approvals/deny']({ id: no, reason: 'never' }, operator)).then(resolve, reject)
  })
  await Promise.all([begun, denied])
  expect(await Promise.all(made)).toEqual([null, 'ERR_APPROVAL_DENIED'])
})

test('a yes to equal questions answers those that nobody says no to', async () => {
  await using it = await twoEqual()
  const { methods, made, yes } = it
  await methods['approvals/approve']({ id: yes, scope: 'policy' }, operator)
  expect(await Promise.all(made)).toEqual([null, null])
})

test('a question to which a no could not be recorded waits on, whatever is said to an equal one', async () => {
  await using it = await twoEqual()
  const { governance, methods, made, yes, no } = it
  const { recorder } = governance
  const record = recorder.record.bind(recorder)
  recorder.record = async (...said) => {
    if (said[0] !== 'approval.denied') return record(...said)
    await setTimeout(50)
    throw new Error('the disk is full')
  }
  const denied = methods['approvals/deny']({ id: no, reason: 'never' }, operator)
  await Promise.all([
    expect(denied).rejects.toThrow('the disk is full'),
    methods['approvals/approve']({ id: yes, scope: 'policy' }, operator),
  ])
  expect(await made[0]).toBeNull()
  await setTimeout(50)
  expect(governance.approvals.pending().map(({ id }) => id)).toEqual([no])
  recorder.record = record
  await methods['approvals/deny']({ id: no, reason: 'never' }, operator)
  expect(await made[1]).toBe('ERR_APPROVAL_DENIED')
})
