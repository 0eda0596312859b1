// A yes that an operator takes back before its call has a permit: nothing is sent by it.
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
