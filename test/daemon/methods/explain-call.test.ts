// A call that was decided again while a person was asked is explained by what decided in the end.
import { expect, test } from 'vitest'
import { explainCall } from '../../../src/daemon/methods/explain-call.ts'
import type { JournalRecord } from '../../../src/journal/record.ts'
import type { CallId } from '../../../src/lib/ids.ts'
import type { ExplainedCall } from '../../../src/rpc/governed.ts'

const call = 'c-000000000000' as CallId
const basis = { call, server: 'files', subject: 'read', identity: 'files/read@1#1', trust: 'untrusted' }
const answered = { ...basis, rule: 'rules[0]', granted: true, scope: 'once', by: '0' }

const explained = (
  ...recorded: readonly (readonly [type: string, body: object])[]
): Omit<ExplainedCall, 'place'> => {
  const chain = { at: '2026-01-01T00:00:00.000Z', daemon: 'd-1', segment: 1, prev: '', hash: '', mac: null }
  const records = recorded.map(([type, body], at): JournalRecord => ({ ...chain, seq: at + 1, type, body }))
  return explainCall(call, records, (server) => (server === 'files' ? 'v2' : 'v1'))
}

test('the answer that counted is the last one', () => {
  const { approval, policy } = explained(
    ['approval.used', { ...answered, policy: 'v1', approval: 'a-1' }],
    ['approval.used', { ...answered, policy: 'v2', approval: 'a-2' }],
    ['call.intent', { ...basis, policy: 'v2', permit: 'p-1' }],
  )
  expect(approval).toMatchObject({ seq: 2, id: 'a-2' })
  expect(policy).toEqual({ version: 'v2', is_present: true })
})

test('an answer under a policy that held no more is none', () => {
  const asked = ['approval.used', { ...answered, policy: 'v1', approval: 'a-1' }] as const
  expect(explained(asked, ['call.intent', { ...basis, policy: 'v2', permit: 'p-1' }])).toMatchObject({
    action: 'allow',
    approval: null,
  })
  const denial = { ...basis, policy: 'v2', rule: 'rules[1]', code: 'ERR_POLICY_DENIED' }
  expect(explained(asked, ['call.denied', denial])).toMatchObject({
    action: 'deny',
    approval: null,
    rule: 'rules[1]',
  })
})

test('a call that was approved, and whose daemon ended before its intent, was not sent', () => {
  expect(explained(['approval.used', { ...answered, policy: 'v2', approval: 'a-1' }])).toMatchObject({
    state: 'refused',
    reason: 'it was never sent: its daemon ended before that',
    approval: { id: 'a-1', granted: true },
    check: null,
  })
})

test('a policy is the server’s own, and told from the present one', () => {
  const { policy } = explained(['call.intent', { ...basis, policy: 'v1', permit: 'p-1' }])
  expect(policy).toEqual({ version: 'v1', is_present: false })
})

const intent = ['call.intent', { ...basis, policy: 'v2', permit: 'p-1' }] as const

test.each([
  [
    'is known once the server has answered',
    [intent, ['call.outcome', { call, outcome: 'result' }]],
    'passed',
  ],
  ['is not while it is under way', [intent], 'unknown'],
  [
    'is not when its daemon ended before it',
    [intent, ['call.outcome', { call, outcome: 'unknown' }]],
    'unknown',
  ],
  ['is when it failed', [intent, ['call.denied', { ...basis, check: 'trust' }]], 'trust'],
  ['is when it never came to it', [['call.denied', { ...basis, check: null }]], null],
] as const)('what the check of a call came to %s', (_when, records, check) => {
  expect(explained(...records).check).toBe(check)
})

test.each([
  ['ERR_APPROVAL_DENIED', 'a yes to the question, or '],
  ['ERR_APPROVAL_TIMEOUT', 'an operator who answers (sallyport approvals --watch), or '],
  ['ERR_APPROVAL_UNAVAILABLE', 'an operator who answers (sallyport approvals --watch), or '],
])('%s is mended by a rule that names the tool, which an allow by a pattern need not be', (code, first) => {
  const asked = { ...answered, granted: false, approval: null, policy: 'v2' }
  const { change } = explained(
    ['approval.used', asked],
    ['call.denied', { ...basis, policy: 'v2', rule: 'rules[0]', code }],
  )
  expect(change).toBe(`${first}a rule that allows exactly mcp:files:read, before rules[0]`)
})

test('a question about the task of somebody else is mended by no rule', () => {
  const denial = { ...basis, subject: 'tasks/get', policy: 'v2', rule: null, code: 'ERR_TASK_NOT_FOUND' }
  const { action, change } = explained(['call.denied', denial])
  expect(action).toBe(null)
  expect(change).toBe('the id of a task that its caller began at files itself')
})

test('a yes is not needed where a rule names the tool, and useless where one denies it', () => {
  const { change } = explained(
    ['approval.used', { ...answered, policy: 'v2', approval: 'a-1' }],
    ['call.intent', { ...basis, policy: 'v2', rule: 'rules[0]', permit: 'p-1' }],
  )
  expect(change).toBe('a rule that allows exactly mcp:files:read, before rules[0], or one that denies it')
})
