// What comes to stand on an approval while its end is being recorded ends with it.
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

test('calls that go by an approval while an operator ends it', async () => {
  const now = (): number => performance.now()
  const limits = () => ({ waitMs: 50, ttlMs: 60_000 })
  const approvals = new Approvals({ limits, now, listeners: () => 1, tell: () => undefined })
  const permits = new Permits(now)
  const { signal } = new AbortController()
  const first = approvals.ask(question, { signal })
  const id = approvals.pending()[0]?.id ?? ''
  approvals.approve(id, '0', approvals.draft(id, 'policy', '0'))
  approvals.claim(await first)

  const { promise: durable, resolve: written } = Promise.withResolvers<void>()
  // Of all that governs, an answer takes these, and a journal whose disk is slow.
  const governance = { approvals, permits, recorder: { record: () => durable } } as unknown as Governance
  const methods = approvalMethods({ governance, events: new EventLog() })
  const ended = methods['approvals/deny']({ id, reason: 'no more' }, operator)
  const [early, late] = [await approvals.ask(question, { signal }), await approvals.ask(question, { signal })]
  expect([early, late]).toMatchObject([{ granted: true }, { granted: true }])
  approvals.claim(early)
  permits.issue({ approval: id } as unknown as Binding, 1000)
  written()
  expect(await ended).toEqual({ id })
  expect(approvals.claim(late)).toMatchObject({ granted: false, by: '0' })
  expect(permits.some(({ binding }) => binding.approval === id)).toBe(false)
})
