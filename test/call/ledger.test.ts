// What stands between a tool and its call, as the journal adds up: acceptance by instance, and holds by name.
import { beforeEach, describe, expect, test } from 'vitest'
import { Ledger } from '../../src/call/ledger.ts'
import { newInstanceId } from '../../src/lib/ids.ts'
import { acceptedBody } from '../support/accepted.ts'

const accepted = acceptedBody('files', 'read_file')
let ledger: Ledger
beforeEach(() => {
  ledger = new Ledger({ provisionalAfter: 2, trustedAfter: 4 })
  ledger.apply({ type: 'surface.accepted', body: accepted })
})

test('an instance whose list was not seen yet stands for nothing that was accepted', () => {
  const instance = newInstanceId()
  expect(ledger.standing('files', instance, 'tool', 'read_file')).toMatchObject({ state: 'unaccepted' })
  expect(ledger.standing('files', null, 'tool', 'read_file')).toMatchObject({
    state: 'accepted',
    identity: 'files/read_file@1#1',
  })
})

test('the same tool accepted again is another identity, and what was said of the old one stays as it was', () => {
  const before = ledger.standing('files', null, 'tool', 'read_file')
  expect(ledger.standing('files', null, 'tool', 'read_file')).toBe(before)
  ledger.apply({ type: 'surface.accepted', body: { ...accepted, declarationVersion: 2 } })
  expect(ledger.standing('files', null, 'tool', 'read_file')).toMatchObject({
    identity: 'files/read_file@1#2',
  })
  expect(before).toMatchObject({ identity: 'files/read_file@1#1' })
  ledger.apply({ type: 'server.removed', body: { server: 'files', by: '0', scope: 'registered' } })
  expect(ledger.standing('files', null, 'tool', 'read_file')).toMatchObject({ state: 'unaccepted' })
})

test.each([
  ['what it did', ['MP-FH-005', 'operator'], 'ungoverned'],
  ['what it did', ['operator', 'MP-FH-008'], 'violated'],
  ['what it did last', ['MP-FH-005', 'MP-FH-008'], 'violated'],
  ['what was said last', ['storm', 'operator'], 'unavailable'],
])('a server is halted for %s: %j', (_what, failures, state) => {
  const halt = { server: 'files', origin: 'o', owner: null }
  for (const failure of failures)
    ledger.apply({ type: 'server.quarantined', body: { ...halt, failure, reason: failure } })
  const standing = ledger.standing('files', null, 'tool', 'read_file')
  const reason = state === 'ungoverned' ? 'MP-FH-005' : failures[1]
  expect(standing).toMatchObject({ state, reason: expect.stringContaining(reason ?? '') as string })
  expect(ledger.quarantined()).toHaveLength(1)
})

test('a record of a quarantine without an origin, as an earlier version made it, halts its server', () => {
  const earlier = { server: 'files', failure: 'MP-FH-008', reason: 'r' } as never
  ledger.apply({ type: 'server.quarantined', body: earlier })
  expect(ledger.standing('files', null, 'tool', 'read_file')).toMatchObject({ state: 'violated' })
})

describe('what a tool has earned', () => {
  const good = {
    type: 'call.outcome',
    body: { server: 'files', subject: 'read_file', kind: 'tool', outcome: 'result', trust_epoch: 1 },
  } as const
  const violation = { server: 'files', tool: 'read_file', at: '', failure: 'MP-FH-003', detail: '' }
  const trust = () => ledger.trust('files', 'read_file')
  beforeEach(() => {
    ledger.apply({ type: 'trust.violated', body: violation })
    for (let n = 0; n < 8; n += 1) ledger.apply(good)
    ledger.apply({ type: 'surface.changed', body: { server: 'files', became: { read_file: 'other' } } })
    expect(trust()).toMatchObject({ tier: 'trusted', evidence: 8, epoch: 1 })
  })

  test.each<[string, () => void]>([
    [
      'is removed',
      () => ledger.apply({ type: 'server.removed', body: { server: 'files', by: '0', scope: 'registered' } }),
    ],
    [
      'is accepted with other code',
      () => ledger.apply({ type: 'surface.accepted', body: { ...accepted, codeDigest: 'd' } }),
    ],
    [
      'is accepted as another version',
      () => ledger.apply({ type: 'surface.accepted', body: { ...accepted, serverVersion: '0' } }),
    ],
  ])('is not the next one’s where its server %s, and what was held against it is', (_how, replace) => {
    replace()
    expect(trust()).toMatchObject({
      tier: 'untrusted',
      evidence: 0,
      epoch: 2,
      confidence: 0.5,
      history: [{ failure: 'MP-FH-003' }],
    })
    expect(ledger.told('files', 'read_file')).toBe(null)
    ledger.apply({ type: 'surface.accepted', body: { ...accepted, declarationVersion: 3 } })
    ledger.apply(good) // it was in flight
    expect(trust()).toMatchObject({ tier: 'untrusted', evidence: 0 })
  })

  test('is of the acceptance under which it was called: what other code did is no evidence', () => {
    const fresh = new Ledger({ provisionalAfter: 1, trustedAfter: 2 })
    fresh.apply({ type: 'surface.accepted', body: accepted })
    const begun = { ...good.body, identity: 'files/read_file@1#1', trust_epoch: 0 }
    fresh.apply({
      type: 'surface.accepted',
      body: { ...accepted, codeDigest: 'other', declarationVersion: 2 },
    })
    fresh.apply({ type: 'call.outcome', body: begun })
    expect(fresh.trust('files', 'read_file').evidence).toBe(0)
    fresh.apply({ type: 'call.outcome', body: { ...begun, identity: 'files/read_file@1#2' } })
    expect(fresh.trust('files', 'read_file').evidence).toBe(1)
  })

  test('stays where the same server is accepted again, or another one goes', () => {
    ledger.apply({ type: 'surface.accepted', body: { ...accepted, declarationVersion: 2 } })
    ledger.apply({ type: 'server.removed', body: { server: 'file', by: '0', scope: 'registered' } })
    expect(trust()).toMatchObject({ tier: 'trusted', evidence: 8, epoch: 1 })
  })
})

describe('accepted again', () => {
  const [other] = acceptedBody('files', 'write_file').tools
  const [tool] = accepted.tools
  const changed = { ...tool, surfaceDigest: 'other' }
  const earn = (): void => {
    for (let n = 0; n < 4; n += 1)
      ledger.apply({
        type: 'call.outcome',
        body: {
          server: 'files',
          subject: 'read_file',
          kind: 'tool',
          outcome: 'result',
          trust_epoch: 0,
          identity: `files/read_file@1#${ledger.accepted('files')?.declarationVersion}`,
        },
      })
  }
  let renews: true | undefined
  const accept = (...tools: readonly unknown[]): void =>
    ledger.apply({
      type: 'surface.accepted',
      body: { ...accepted, tools, declarationVersion: ledger.nextVersion('files'), renews } as never,
    })
  beforeEach(() => {
    renews = true
    accept(tool, other)
    earn()
    expect(ledger.trust('files', 'read_file')).toMatchObject({ tier: 'trusted', epoch: 0 })
  })

  test.each<[string, () => void]>([
    ['otherwise', () => accept(changed, other)],
    ['otherwise, after it was left out', () => (accept(other), accept(changed, other))],
    ['as it was, after it was left out', () => (accept(other), accept(tool, other))],
  ])('a tool that is listed %s has earned nothing', (_how, acceptances) => {
    acceptances()
    expect(ledger.trust('files', 'read_file')).toMatchObject({ tier: 'untrusted', evidence: 0, epoch: 1 })
    expect(ledger.trust('files', 'write_file')).toMatchObject({ epoch: 0 })
  })

  test('a record of an earlier version, which let what was earned go on, is read as it was then', () => {
    renews = undefined
    accept(changed, other)
    expect(ledger.trust('files', 'read_file')).toMatchObject({ tier: 'trusted', evidence: 4, epoch: 0 })
  })

  test('a tool that is listed as it was keeps what it has earned, whatever of another tool changes', () => {
    accept(tool, { ...other, surfaceDigest: 'other' })
    expect(ledger.trust('files', 'read_file')).toMatchObject({ tier: 'trusted', evidence: 4, epoch: 0 })
  })
})

describe('of a server that a host launched', () => {
  const removed = (server: string) =>
    ({ type: 'server.removed', body: { server, by: '0', scope: 'dynamic' } }) as const
  const outcome = (server: string) =>
    ({
      type: 'call.outcome',
      body: { server, subject: 'read_file', kind: 'tool', outcome: 'result', trust_epoch: 0 },
    }) as const
  const violation = { tool: 'read_file', at: '', failure: 'MP-FH-003', detail: '' }

  test('nothing is left once it is gone, however many came, but that no identity comes twice', () => {
    const identities = new Set<string>()
    const before = JSON.stringify({ ...ledger.save(), forgotten: 0 })
    for (let n = 0; n < 5000; n += 1) {
      const server = `launched-${n % 2500}`
      const declarationVersion = ledger.nextVersion(server)
      ledger.apply({ type: 'surface.accepted', body: { ...accepted, server, declarationVersion } })
      ledger.apply(outcome(server))
      ledger.apply({ type: 'trust.violated', body: { server, ...violation } })
      ledger.apply({ type: 'surface.changed', body: { server, became: { read_file: 'other' } } })
      identities.add(`${server}#${declarationVersion}`)
      ledger.apply(removed(server))
    }
    expect(identities.size).toBe(5000)
    expect(JSON.stringify({ ...ledger.save(), forgotten: 0 })).toBe(before)
    const restarted = new Ledger({ provisionalAfter: 2, trustedAfter: 4 })
    restarted.load(ledger.save())
    expect(restarted.nextVersion('launched-1')).toBe(ledger.nextVersion('launched-1'))
    expect(ledger.nextVersion('files')).toBe(2) // its own: it was forgotten by nobody
  })

  test('what comes late begins nothing anew', () => {
    ledger.apply({ type: 'surface.accepted', body: { ...accepted, server: 'mine' } })
    ledger.apply(removed('mine'))
    const before = JSON.stringify(ledger.save())
    ledger.apply(outcome('mine'))
    ledger.apply({ type: 'trust.violated', body: { server: 'mine', ...violation } })
    ledger.apply({ type: 'surface.changed', body: { server: 'mine', became: { read_file: 'other' } } })
    expect(JSON.stringify(ledger.save())).toBe(before)
    expect(ledger.knows('mine')).toBe(false)
  })
})

describe('a hold', () => {
  const calls: readonly (readonly [string, string, string | null])[] = [
    ['files', 'read_file', 'task-7'],
    ['files', 'read_file', null],
    ['files', 'write_file', 'task-7'],
    ['mail', 'read_file', 'task-7'],
    ['mail', 'send', 'task-8'],
  ]
  test.each([
    [{ server: 'files', tool: null, lineage: null }, [0, 1, 2]],
    [{ server: 'files', tool: 'read_file', lineage: null }, [0, 1]],
    [{ server: null, tool: 'read_file', lineage: null }, [0, 1, 3]],
    [{ server: null, tool: null, lineage: 'task-7' }, [0, 2, 3]],
    [{ server: 'files', tool: null, lineage: 'task-7' }, [0, 2]],
    [{ server: 'files', tool: 'write_file', lineage: 'task-8' }, []],
  ] as const)('%j covers just the calls that it names', (body, covered) => {
    const held = (): readonly number[] =>
      calls.flatMap(([server, name, lineage], n) => (ledger.hold(server, name, lineage) === 'h' ? [n] : []))
    ledger.apply({ type: 'hold.placed', body: { name: 'h', ...body } })
    expect(held()).toEqual(covered)
    ledger.apply({ type: 'hold.released', body: { name: 'h', ...body } })
    expect(held()).toEqual([])
  })
})
