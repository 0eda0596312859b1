// Several operators answer one question at once: whatever comes first on record counts, and a no leaves nothing that stands.
import { renameSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Approvals } from '../../../src/call/approve.ts'
import { EventLog } from '../../../src/daemon/events.ts'
import { approvalMethods } from '../../../src/daemon/methods/approval-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { eventually } from '../../support/eventually.ts'
import { governanceDefaults, governed } from '../../support/governance.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { approvalQuestion as question } from '../../support/approval-question.ts'

const attributes = { uid: 0, gid: 0, pid: 1 }
const principal = { kind: 'uid', id: '0', attributes } as const
// Of all that a connection offers, an answer takes who gives it.
const operator = { principal, caller: { principal, role: 'operator' } } as unknown as MethodCall
const { signal } = new AbortController()

const yes = ['approve', 'policy'] as const
const once = ['approve', 'once'] as const
const no = ['deny', 'once'] as const

test.each([
  ['a yes that stands, then a no', yes, no, { granted: true, kept: ['fulfilled', 'fulfilled'], standing: 0 }],
  [
    'a no, then a yes that would stand',
    no,
    yes,
    { granted: false, kept: ['fulfilled', 'rejected'], standing: 0 },
  ],
  [
    'a yes, then one that would stand',
    once,
    yes,
    { granted: true, kept: ['fulfilled', 'rejected'], standing: 0 },
  ],
  ['a yes, then a no', once, no, { granted: true, kept: ['fulfilled', 'fulfilled'], standing: 0 }],
  [
    'a yes that stands, then another',
    yes,
    once,
    { granted: true, kept: ['fulfilled', 'rejected'], standing: 1 },
  ],
] as const)('%s', async (_, first, second, { granted, kept, standing }) => {
  await using state = await tempDir()
  // Each record takes a while: what is said meanwhile waits for the next sync.
  const settings = { journal: { ...governanceDefaults.journal, durability: 'fsync' as const } }
  const open = () => governed({ rules: [], emit: () => undefined, state: state.path, settings })
  {
    await using at = await open()
    const { approvals } = at.governance
    const methods = approvalMethods({ governance: at.governance, events: new EventLog() })
    at.governance.listen()
    const answer = approvals.ask(question, { signal })
    const id = approvals.pending()[0]?.id ?? ''
    const say = async ([verb, scope]: typeof yes | typeof once | typeof no): Promise<unknown> =>
      verb === 'deny'
        ? methods['approvals/deny']({ id }, operator)
        : methods['approvals/approve']({ id, scope }, operator)
    const said = await Promise.allSettled([say(first), say(second)])
    expect(said.map(({ status }) => status)).toEqual(kept)
    expect(await answer).toMatchObject({ granted })
    expect(approvals.standing()).toHaveLength(standing)
  }
  await using again = await open()
  expect(again.governance.approvals.standing()).toHaveLength(standing)
})

test('a yes that stands is taken back in the name of who takes it back, also where the disk took nothing then', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { approvals } = at.governance
  const methods = approvalMethods({ governance: at.governance, events: new EventLog() })
  at.governance.listen()
  const answer = approvals.ask(question, { signal })
  const id = approvals.pending()[0]?.id ?? ''
  await methods['approvals/approve']({ id, scope: 'policy' }, operator)
  await answer
  const away = `${at.directory}.away`
  renameSync(at.directory, away)
  await expect(methods['approvals/deny']({ id, reason: 'a slip' }, operator)).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
  })
  expect(approvals.standing()).toEqual([])
  renameSync(away, at.directory)
  const ended = await eventually(() => at.records().find(({ type }) => type === 'approval.ended'))
  expect(ended.body).toMatchObject({ ids: [id], by: '0', reason: 'a slip' })
})

test.each([
  ['policy', (approvals: Approvals) => approvals.void(({ identity }) => identity.startsWith('files/'))],
  ['session', (approvals: Approvals) => approvals.endSession(question.session)],
] as const)('a yes for a %s that ends while it is being written stands no more', async (scope, end) => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { approvals } = at.governance
  const methods = approvalMethods({ governance: at.governance, events: new EventLog() })
  at.governance.listen()
  const caller = new AbortController()
  const asked = approvals.ask(question, { signal: caller.signal })
  const id = approvals.pending()[0]?.id ?? ''
  const said = Promise.resolve(methods['approvals/approve']({ id, scope }, operator))
  await Promise.resolve() // it is its turn, and the records are on their way
  await Promise.resolve()
  caller.abort() // who asked waits no longer: the yes is for what comes after
  end(approvals)
  await expect(said).rejects.toMatchObject({ code: 'ERR_APPROVAL_NOT_FOUND' })
  await asked
  expect(approvals.standing()).toEqual([])
  const told = at.records().filter(({ type }) => /^approval[.](?:standing|ended)$/.test(type))
  expect(told.map(({ type }) => type)).toEqual(['approval.standing', 'approval.ended'])
  expect(told[1]?.body).toMatchObject({ ids: [id] })
})
