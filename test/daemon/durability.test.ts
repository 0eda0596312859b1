// What is in effect and what is on record are one: permissive facts wait for their record, strict ones are owed it.
import { rename } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { CallId } from '../../src/lib/ids.ts'
import type { Outcome } from '../../src/schema/governor.ts'
import { eventually } from '../support/eventually.ts'
import { governed, type Governed } from '../support/governance.ts'
import { handled } from '../support/handled.ts'
import { serverSettings } from '../support/server-settings.ts'
import { profileOf } from '../support/settings.ts'
import { tempDir } from '../support/temp-dir.ts'

const server = serverSettings('echo.mjs', { acceptance: 'manual' })
const rules = [{ permission: 'mcp:*:*', action: 'allow', where: {}, origin: 'rules[0]' }] as const
const by = { by: '0', peer: { uid: 0, gid: 0, pid: 1 } }

interface Stage extends AsyncDisposable {
  readonly at: Governed
  readonly halted: readonly string[]
}

async function stage(state: string, more: Partial<Parameters<typeof governed>[0]> = {}): Promise<Stage> {
  const halted: string[] = []
  const at = await governed({
    servers: [server],
    rules,
    emit: () => undefined,
    halt: (name) => halted.push(name),
    state,
    ...more,
  })
  return { at, halted, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() }
}

const accept = ({ at }: Stage): Promise<unknown> =>
  at.governance.surfaces.accept(
    { server, tools: new Map([tool('one'), tool('two')]), saidVersion: null, rest: {} },
    { ...by, declared: null, declaredVersion: null, only: null },
  )
const tool = (name: string): [string, unknown] => [name, { name, inputSchema: { type: 'object' } }]

const never = { signal: new AbortController().signal }
const proposal = (call: string, subject = 'one') => ({
  call: call as CallId,
  kind: 'tool' as const,
  server,
  instance: null,
  subject,
  arguments: {},
  bytes: `{"name":"${subject}","arguments":{}}`,
  evidence: `{"name":"${subject}","arguments":{}}`,
  principal: '0',
  peer: by.peer,
  session: 's',
  lineage: null,
  id: null,
  obstacle: null,
  comparing: () => null,
  isPart: false,
})
const good: Outcome = { kind: 'result', durationMs: 1, bytes: '{}', detail: null }

const types = ({ at }: Stage): readonly string[] => at.records().map(({ type }) => type)
const saved = ({ at }: Stage): unknown => at.governance.ledger.save()

/** Takes the journal away until disposed. */
async function broken({ at }: Stage): Promise<AsyncDisposable> {
  await rename(at.directory, `${at.directory}.away`)
  return { [Symbol.asyncDispose]: () => rename(`${at.directory}.away`, at.directory) }
}

describe('what takes away', () => {
  test('acts at once though it can not be recorded, and is recorded as soon as it can be', async () => {
    await using state = await tempDir()
    {
      await using one = await stage(state.path)
      await accept(one)
      const { ledger, consequences, permits } = one.at.governance
      permits.issue({ identity: 'fixture/one@1.0.0#1' } as never, 60_000)
      {
        await using _broken = await broken(one)
        await expect(consequences.violate('fixture', ['one'], 'MP-FH-003', 'x')).rejects.toMatchObject({
          code: 'ERR_JOURNAL',
        })
        await expect(consequences.quarantine('fixture', 'MP-FH-008', 'y')).rejects.toThrow()
        expect(permits.list()).toEqual([])
        expect(ledger.trust('fixture', 'one').epoch).toBe(2)
        expect(ledger.standing('fixture', null, 'tool', 'one').state).toBe('violated')
        expect(one.halted).toEqual(['fixture'])
      }
      // Nobody asks for anything: the record comes by itself.
      await eventually(() => types(one).includes('server.quarantined'))
      expect(types(one).filter((type) => type === 'trust.violated')).toHaveLength(3)
      expect(ledger.trust('fixture', 'one')).toMatchObject({ epoch: 2, confidence: 0.25 })
    }
    await using two = await stage(state.path)
    expect(two.at.governance.ledger.trust('fixture', 'one')).toMatchObject({ epoch: 2, confidence: 0.25 })
    expect(two.at.governance.ledger.standing('fixture', null, 'tool', 'one').state).toBe('violated')
  })

  test('is written before what an operator says afterwards, so that a release is not undone by it', async () => {
    await using state = await tempDir()
    await using one = await stage(state.path)
    await accept(one)
    const { consequences, ledger } = one.at.governance
    {
      await using _broken = await broken(one)
      await expect(consequences.quarantine('fixture', 'MP-FH-008', 'y')).rejects.toThrow()
    }
    await one.at.governance.add({ type: 'server.released', body: { server: 'fixture', reason: '' } })
    const order = types(one).filter((type) => type.startsWith('server.'))
    expect(order).toEqual(['server.quarantined', 'server.released'])
    expect(ledger.quarantined()).toEqual([])
  })

  test('is one batch: a halt without the loss of trust is in no journal', async () => {
    await using state = await tempDir()
    await using one = await stage(state.path)
    await accept(one)
    const work = one.at.governance.consequences.quarantine('fixture', 'MP-FH-008', 'y')
    await work
    const records = one.at.records()
    const first = records.findIndex(({ type }) => type === 'server.quarantined')
    expect(records.slice(first).map(({ type, mac }) => [type, mac !== null])).toEqual([
      ['server.quarantined', false],
      ['trust.violated', false],
      ['trust.violated', true],
    ])
  })
})

describe('what gives', () => {
  test('an acceptance and a release have no effect where they can not be recorded, nor does a reset give anything', async () => {
    await using state = await tempDir()
    await using one = await stage(state.path)
    const { governance } = one.at
    await accept(one)
    await governance.consequences.quarantine('fixture', 'MP-FH-008', 'y')
    const before = saved(one)
    await using _broken = await broken(one)
    await expect(accept(one)).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
    await expect(governance.consequences.reset('fixture', 'one', '', by)).rejects.toThrow()
    expect(governance.ledger.trust('fixture', 'one')).toMatchObject({ confidence: 0.5, epoch: 2 })
    const release = { type: 'server.released', body: { server: 'fixture', reason: '' } } as const
    await expect(governance.add(release)).rejects.toThrow()
    expect(saved(one)).toEqual(before)
    expect(governance.ledger.quarantined()).toHaveLength(1)
  })

  test('evidence counts only under the trust that admitted it, whichever record comes first', async () => {
    for (const isOutcomeFirst of [true, false]) {
      await using state = await tempDir()
      let live: unknown
      {
        await using one = await stage(state.path)
        await accept(one)
        const { governance, policy } = { governance: one.at.governance, policy: one.at.policy }
        const admission = await policy.governor.admit(proposal('c-1'), never)
        const settle = () => policy.governor.settle(admission, good)
        await new Promise(setImmediate)
        if (isOutcomeFirst) settle()
        const violated = governance.consequences.violate('fixture', ['one'], 'MP-FH-003', 'x')
        if (!isOutcomeFirst) settle()
        await violated
        await eventually(() => types(one).includes('call.outcome'))
        expect(governance.ledger.trust('fixture', 'one')).toMatchObject({ evidence: 0, epoch: 1 })
        live = saved(one)
      }
      await using two = await stage(state.path)
      expect(saved(two)).toEqual(live)
    }
  })
})

test('a daemon that starts comes to what the last one had come to, after any sequence of facts', async () => {
  await using state = await tempDir()
  let seed = 42
  const random = (n: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % n
  }
  for (let round = 0; round < 4; round += 1) {
    let live: unknown
    {
      await using one = await stage(state.path, { settings: { journal: journalOf(4000) } })
      const { governance, policy } = one.at
      const work: Promise<unknown>[] = []
      const name = (): string => (random(2) === 0 ? 'one' : 'two')
      const acts = [
        () => accept(one),
        () => governance.consequences.violate('fixture', [name()], 'MP-FH-003', 'x'),
        () => governance.consequences.quarantine('fixture', 'MP-FH-005', 'y'),
        () => governance.add({ type: 'server.released', body: { server: 'fixture', reason: '' } }),
        () => governance.consequences.reset('fixture', name(), '', by),
        () => governance.consequences.hold(holdOf(name()), '', by),
        () => governance.add({ type: 'hold.released', body: holdOf(name()) }),
        async () => {
          const asked = proposal(`c-${round}-${random(1_000_000)}`, name())
          const admission = await policy.governor.admit(asked, never).catch(() => null)
          if (admission !== null) policy.governor.settle(admission, good)
        },
      ]
      for (let n = 0; n < 120; n += 1) {
        work.push(Promise.resolve(acts[random(acts.length)]?.()))
        if (random(4) === 0) await Promise.all(work)
      }
      await Promise.all(work)
      await new Promise(setImmediate) // outcomes are recorded without anybody waiting
      live = saved(one)
    }
    await using two = await stage(state.path, { settings: { journal: journalOf(4000) } })
    expect(saved(two)).toEqual(live)
  }
})

const journalOf = (segmentBytes: number) =>
  ({ durability: 'write', segmentBytes, evidenceBytes: 65_536, keepDays: 0 }) as const
const holdOf = (tool: string) => ({ name: tool, server: 'fixture', tool, lineage: null })

describe('a permit between its issue and the boundary', () => {
  test.each<[string, (one: Stage) => unknown, string]>([
    ['an operator revokes it', ({ at }) => at.governance.permits.revoke(() => true), 'authenticity'],
    [
      'its tool violates',
      ({ at }) => at.governance.consequences.violate('fixture', ['one'], 'MP-FH-003', 'x'),
      'authenticity',
    ],
    [
      'its server is quarantined',
      ({ at }) => at.governance.consequences.quarantine('fixture', 'MP-FH-008', 'x'),
      'authenticity',
    ],
    [
      'an operator stops its server',
      ({ at }) => at.governance.consequences.stop('fixture', 'x', by),
      'authenticity',
    ],
  ])('lets nothing through once %s', async (_title, act, check) => {
    await using state = await tempDir()
    await using one = await stage(state.path)
    await accept(one)
    const { governor } = one.at.policy
    const { permits } = one.at.governance
    await governor.admit(proposal('c-1'), never)
    const admitted = governor.admit(proposal('c-2'), never)
    const refused = handled(
      expect(admitted).rejects.toMatchObject({
        code: 'ERR_PERMIT_REFUSED',
        details: expect.objectContaining({ check }),
      }),
    )
    // Turn by turn, until the intent is on its way to the disk.
    for (let turn = 0; permits.list().length === 0 && turn < 1000; turn += 1) await Promise.resolve()
    expect(permits.list()).toHaveLength(1)
    const acted = act(one)
    expect(permits.list()).toEqual([])
    await refused
    await acted
    const last = one.at.records().findLast(({ type }) => type === 'call.denied')
    expect(last?.body).toMatchObject({ call: 'c-2', failure: 'MP-FH-006' })
  })

  test.each([
    [
      'network',
      { sideEffects: ['network'] },
      'the class network is declared, and of fixture its entry has no egress',
    ],
    ['secret-access', { sideEffects: ['secret-access'] }, 'its entry has no credentials'],
    ['execute', { sideEffects: ['execute'] }, 'exec is none in the profile offline'],
    [
      'a path',
      { resourceScopes: ['/workspace/x'] },
      'the scope /workspace/x is declared, and fixture has no mount',
    ],
    ['a host', { resourceScopes: ['api.github.com:443'] }, 'fixture has no egress that holds it'],
  ] as const)(
    'lets nothing through that declares %s where its sandbox does not grant it any more',
    async (_title, declares, why) => {
      await using state = await tempDir()
      const profiles = new Map([['offline', profileOf({ name: 'offline', exec: 'none' })]])
      await using one = await stage(state.path, { settings: { profiles } })
      const { governance, policy } = one.at
      await accept(one)
      const [accepted] = governance.ledger.save().accepted
      const tools =
        accepted?.tools.map((it) => ({ ...it, declaration: { ...it.declaration, ...declares } })) ?? []
      if (accepted !== undefined)
        await governance.add({ type: 'surface.accepted', body: { ...accepted, tools } })
      await expect(policy.governor.admit(proposal('c-1'), never)).rejects.toMatchObject({
        code: 'ERR_PERMIT_REFUSED',
        message: expect.stringContaining(`side-effects: `),
        details: expect.objectContaining({ check: 'side-effects' }),
      })
      expect(one.at.records().at(-1)?.body).toMatchObject({ reason: expect.stringContaining(why) })
    },
  )
})
