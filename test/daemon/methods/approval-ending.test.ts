// An approval ends when an operator says so, not when that is on record.
import { expect, test } from 'vitest'
import { Approvals } from '../../../src/call/approve.ts'
import { type Binding, Permits } from '../../../src/call/permit.ts'
import { EventLog } from '../../../src/daemon/events.ts'
import type { Governance } from '../../../src/daemon/governance/governance.ts'
import { approvalMethods } from '../../../src/daemon/methods/approval-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { approvalQuestion as question } from '../../support/approval-question.ts'

const principal = { kind: 'uid', id: '0', attributes: { uid: 0, gid: 0, pid: 1 } } as const
// Of all that a connection offers, an answer takes who gives it.
const operator = { principal, caller: { principal, role: 'operator' } } as unknown as MethodCall

/** An approval that stands, a permit that stands on it, and an operator's word that ends both, whose record takes its time. */
async function ending(record: Promise<void>) {
  const now = (): number => performance.now()
  const limits = () => ({ waitMs: 50, ttlMs: 60_000 })
  const approvals = new Approvals({ limits, now, listeners: () => 1, tell: () => undefined })
  const permits = new Permits(now)
  const { signal } = new AbortController()
  const first = approvals.ask(question, { signal })
  const id = approvals.pending()[0]?.id ?? ''
  approvals.approve(id, '0', approvals.draft(id, 'policy', '0'))
  approvals.claim(await first)
  const late = await approvals.ask(question, { signal })
  permits.issue({ approval: id } as unknown as Binding, 1000)

  // Of all that governs, an answer takes these.
  const governance = { approvals, permits, recorder: { record: () => record } } as unknown as Governance
  const methods = approvalMethods({ governance, events: new EventLog() })
  const ended = methods['approvals/deny']({ id, reason: 'no more' }, operator)
  return { approvals, permits, signal, id, late, ended }
}

test('calls that go by an approval while an operator ends it', async () => {
  const { promise: durable, resolve: written } = Promise.withResolvers<void>()
  const { approvals, permits, signal, id, late, ended } = await ending(durable)
  const asked = approvals.ask(question, { signal })
  expect(approvals.pending()).toHaveLength(1)
  expect(approvals.claim(late)).toMatchObject({ granted: false, by: '0' })
  expect(permits.some(({ binding }) => binding.approval === id)).toBe(false)
  written()
  expect(await ended).toEqual({ id })
  expect(await asked).toMatchObject({ granted: false, isTimeout: true })
})

test('it ends where that cannot be recorded, too, which the operator is told', async () => {
  const { approvals, permits, id, late, ended } = await ending(Promise.reject(new Error('no room')))
  await expect(ended).rejects.toThrow('no room')
  expect(approvals.standing()).toEqual([])
  expect(approvals.claim(late)).toMatchObject({ granted: false, by: '0' })
  expect(permits.some(({ binding }) => binding.approval === id)).toBe(false)
})

test('a call that waits goes on waiting where the no to it cannot be recorded', async () => {
  const limits = () => ({ waitMs: 60_000, ttlMs: 60_000 })
  const approvals = new Approvals({ limits, now: Date.now, listeners: () => 1, tell: () => undefined })
  const controller = new AbortController()
  const asked = approvals.ask(question, { signal: controller.signal })
  const id = approvals.pending()[0]?.id ?? ''
  const record = (): Promise<never> => Promise.reject(new Error('no room'))
  const governance = {
    approvals,
    permits: new Permits(Date.now),
    recorder: { record },
  } as unknown as Governance
  const methods = approvalMethods({ governance, events: new EventLog() })
  await expect(methods['approvals/deny']({ id }, operator)).rejects.toThrow('no room')
  expect(approvals.pending()).toMatchObject([{ id }])
  controller.abort()
  expect(await asked).toMatchObject({ granted: false })
})
