// Words of operators and deeds of servers that come between a decision and its act: each has its effect.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { approvalMethods } from '../../../src/daemon/methods/approval-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { newCallId, newInstanceId } from '../../../src/lib/ids.ts'
import type { Proposal } from '../../../src/schema/governor.ts'
import type { Rule } from '../../../src/schema/settings.ts'
import { eventually } from '../../support/eventually.ts'
import { governanceDefaults, governed } from '../../support/governance.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller } from '../../support/supervisor.ts'

const server = { ...serverSettings('rug-pull.mjs'), name: 's', acceptance: 'first-use' as const }
const waiting = { signal: new AbortController().signal }
const operator = { caller: caller(0, 'operator') } as MethodCall
const rule = (subject: string, action: Rule['action']): Rule => ({
  permission: `mcp:s:${subject}`,
  action,
  where: {},
  origin: `rules of ${subject}`,
})

/** One server whose tool `b` was seen, and proposals to it. */
async function stage(action: Rule['action'] = 'allow') {
  const events: string[] = []
  const at = await governed({
    servers: [server],
    rules: [rule('a', 'allow'), rule('b', action), rule('resources/subscribe', action)],
    emit: ({ type }) => events.push(type),
    settings: { journal: { ...governanceDefaults.journal, evidenceBytes: 1000 } },
  })
  const instance = newInstanceId()
  const tools = new Map(['a', 'b'].map((name) => [name, { name, inputSchema: { type: 'object' } }]))
  await at.policy.governor.observe({ server, instance, tools, saidVersion: null, rest: {} })
  const proposal = (kind: 'tool' | 'method', subject: string, isPart: boolean): Proposal => ({
    server,
    kind,
    subject,
    arguments: {},
    call: newCallId(),
    instance,
    bytes: '{}',
    evidence: '{}',
    principal: '1000',
    peer: { uid: 1000, gid: 1000, pid: 1 },
    session: 'x',
    lineage: null,
    id: null,
    obstacle: null,
    comparing: () => null,
    isPart,
  })
  return { at, proposal, events }
}

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await Promise.resolve()
}

test('a word that releases a server is of the quarantine of then, however soon another follows', async () => {
  for (let k = 0; k < 16; k++) {
    const { at } = await stage()
    await using _ = at
    const { consequences, ledger } = at.governance
    await consequences.quarantine('s', 'MP-FH-008', 'the first')
    const last = ledger.lastHalt('s')
    const fact = { type: 'server.released', body: { server: 's', reason: 'ok' } } as const
    const released = at.governance.add(fact, {}, () => ledger.lastHalt('s') === last)
    await turns(k)
    await Promise.all([released, consequences.quarantine('s', 'MP-FH-008', 'the second')])
    expect(ledger.quarantine('s'), `${k} turns later`).toMatchObject({ reason: 'the second' })
  }
})

test('a quarantine ends every permit of its server, those of methods too', async () => {
  const { at, proposal } = await stage()
  await using _ = at
  const { governance, policy } = at
  await policy.governor.admit(proposal('tool', 'b', true), waiting)
  const admission = await policy.governor.admit(proposal('method', 'resources/subscribe', true), waiting)
  await governance.consequences.quarantine('s', 'MP-FH-008', 'a deed')
  expect(governance.permits.list()).toEqual([])
  await governance.add({ type: 'server.released', body: { server: 's', reason: 'ok' } })
  expect(policy.governor.confirm(admission)).not.toBeNull()
})

describe.each(['policy', 'once'] as const)('a no that follows a yes for %s', (scope) => {
  test('is told that it was in time only where no call goes', async () => {
    const { at, proposal } = await stage('ask')
    await using _ = at
    const { governance, policy } = at
    governance.listen()
    const methods = approvalMethods({ governance, events: {} as never })
    for (let k = 0; k < 40; k++) {
      const issued: string[] = []
      const { permits } = governance
      const issue = permits.issue.bind(permits)
      permits.issue = (...args) => {
        issued.push('issued')
        return issue(...args)
      }
      const call = policy.governor.admit(proposal('tool', 'b', false), waiting).then(
        () => 'admitted',
        () => 'refused',
      )
      await eventually(() => governance.approvals.pending().length === 1)
      const id = governance.approvals.pending()[0]?.id ?? ''
      await methods['approvals/approve']({ id, scope }, operator)
      await turns(k)
      const hadPermit = issued.length > 0
      const no = await Promise.resolve(methods['approvals/deny']({ id, reason: 'no' }, operator)).then(
        () => 'denied',
        () => 'too late',
      )
      expect([await call, no, hadPermit], `${k} turns later`).not.toEqual(['admitted', 'denied', false])
      governance.approvals.void(() => true)
      permits.issue = issue
    }
  })
})

describe.each([
  ['that was approved', false],
  ['whose process is up', true],
])('what is owed by the time of a call %s', (_, isPart) => {
  test('is on record before that is sent', async () => {
    const { at, proposal, events } = await stage(isPart ? 'allow' : 'ask')
    await using _at = at
    const { governance, policy } = at
    const { governor } = policy
    governance.listen()
    const asked = governor.admit(proposal('tool', 'b', isPart), waiting)
    if (!isPart) await eventually(() => governance.approvals.pending().length === 1)
    const waits = isPart ? await asked : null
    const first = await governor.admit(proposal('tool', 'a', false), waiting)
    const evidence = join(at.directory, 'evidence')
    rmSync(evidence, { recursive: true, force: true })
    writeFileSync(evidence, 'no folder: records can be written, and no long answer beside them')
    const bytes = JSON.stringify({ x: 'y'.repeat(5000) })
    governor.settle(first, { kind: 'result', durationMs: 1, bytes, detail: null })
    await eventually(() => events.includes('journal/failed'))
    if (waits !== null) {
      expect(await governor.confirm(waits)).toMatchObject({ code: 'ERR_JOURNAL' })
      return
    }
    governance.approvals.approve(governance.approvals.pending()[0]?.id ?? '', '0', null)
    await expect(asked).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
  })
})
