// Why what a call has begun may not go on: a hold, a rule, an approval that was taken back, a surface that is another one.
import { expect, test } from 'vitest'
import { lasts, type LastingPorts } from '../../../src/daemon/governance/lasting.ts'
import type { Decision } from '../../../src/schema/gate.ts'
import type { Admission } from '../../../src/schema/governor.ts'

const admission = {
  call: 'c-1',
  instance: 'i-1',
  server: 's',
  kind: 'method',
  subject: 'resources/subscribe',
  principal: '0',
  lineage: null,
  approval: null,
  target: {},
} as unknown as Admission
const allow = { action: 'allow', rule: null, reason: 'rules[0]' } as unknown as Decision
const ask = { action: 'ask', rule: 'rules[1]', reason: 'rules[1] asks' } as unknown as Decision
const changed = { state: 'changed', reason: 'it is another one' }

interface World {
  readonly hold?: string
  readonly isRevoked?: boolean
  readonly standing?: object
  readonly isGone?: boolean
}

/** The code with which it ends, or null; and what is recorded. */
function looked(world: World, said: Partial<Admission> = {}, decision = allow) {
  const records: object[] = []
  const ports = {
    ledger: {
      hold: () => world.hold ?? null,
      live: () => (world.isGone === true ? null : {}),
      standing: (_server: string, instance: string | null) =>
        instance === null ? { state: 'accepted' } : (world.standing ?? { state: 'accepted' }),
    },
    approvals: { isRevoked: (id: string) => id === 'a-1' && world.isRevoked === true },
    consequences: { subscriptionEnded: (body: object) => void records.push(body) },
    emit: () => undefined,
  } as unknown as LastingPorts
  return { code: lasts(ports, { ...admission, ...said }, decision, 'p')?.code ?? null, records }
}

test.each([
  ['what holds', {}, {}, allow, null],
  ['a hold', { hold: 'brake' }, {}, allow, 'ERR_POLICY_DENIED'],
  ['a rule that asks by now', {}, {}, ask, 'ERR_POLICY_DENIED'],
  ['a rule that asked, and was answered', {}, { approval: 'a-1' }, ask, null],
  ['an approval that was taken back', { isRevoked: true }, { approval: 'a-1' }, ask, 'ERR_POLICY_DENIED'],
  ['another one that was', { isRevoked: true }, { approval: 'a-2' }, ask, null],
  ['a surface that is another one', { standing: changed }, {}, allow, 'ERR_DECLARATION_MISMATCH'],
  ['that of a process that is gone', { standing: changed, isGone: true }, {}, allow, null],
] as const)('%s', (_what, world, said, decision, code) => {
  const found = looked(world, said, decision)
  expect(found.code).toBe(code)
  expect(found.records).toHaveLength(code === null ? 0 : 1)
})
