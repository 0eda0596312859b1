// Calls that end under another acceptance than the one that they were admitted under: no evidence for it, in this life or the next.
import { expect, test } from 'vitest'
import { newCallId, newInstanceId } from '../../../src/lib/ids.ts'
import type { Proposal } from '../../../src/schema/governor.ts'
import type { Rule } from '../../../src/schema/settings.ts'
import { eventually } from '../../support/eventually.ts'
import { governed } from '../../support/governance.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { tempDir } from '../../support/temp-dir.ts'

const server = serverSettings('echo.mjs', { name: 's', acceptance: 'manual', trust: 'untrusted' })
const rules: readonly Rule[] = [{ permission: 'mcp:s:b', action: 'allow', where: {}, origin: 'rules[0]' }]
const peer = { uid: 1000, gid: 1000, pid: 1 }
const tools = new Map([['b', { name: 'b', inputSchema: { type: 'object' } }]])
const operator = { by: '0', peer, declared: null, declaredVersion: null, only: null }

test('no good call of an earlier acceptance speaks for what is accepted now', async () => {
  await using dir = await tempDir()
  const options = { servers: [server], rules, emit: () => undefined, state: dir.path }
  const none = { tier: 'untrusted', evidence: 0 }
  {
    await using all = await governed(options)
    const { surfaces, ledger } = all.governance
    const { governor } = all.policy
    const instance = newInstanceId()
    const seen = { server, tools, saidVersion: null, rest: {} }
    await surfaces.accept(seen, operator)
    await governor.observe({ ...seen, instance })
    const proposal = (): Proposal => ({
      call: newCallId(),
      kind: 'tool',
      server,
      instance,
      subject: 'b',
      arguments: {},
      bytes: '{}',
      evidence: '{}',
      principal: '1000',
      peer,
      session: 's-0123456789abcdefghijkl',
      lineage: null,
      id: null,
      obstacle: null,
      comparing: () => null,
      isPart: false,
    })
    const waiting = { signal: new AbortController().signal }
    const admit = () => Promise.all(Array.from({ length: 12 }, () => governor.admit(proposal(), waiting)))
    const settle = async (admitted: Awaited<ReturnType<typeof admit>>, all12: number) => {
      for (const one of admitted)
        governor.settle(one, { kind: 'result', durationMs: 1, bytes: '{}', detail: null })
      await eventually(() => all.records().filter(({ type }) => type === 'call.outcome').length === all12)
    }
    const before = await admit()
    await surfaces.accept(seen, operator)
    await settle(before, 12)
    expect(ledger.trust('s', 'b')).toMatchObject(none)
    await settle(await admit(), 24)
    expect(ledger.trust('s', 'b')).toMatchObject({ tier: 'provisional', evidence: 12 })
    await surfaces.accept(seen, operator)
  }
  await using again = await governed(options)
  expect(again.governance.ledger.trust('s', 'b').evidence).toBeLessThanOrEqual(12)
})
