// What the journal adds up to is the same whichever of its records were the last before a kill.
import { expect, test } from 'vitest'
import { Ledger } from '../../../src/call/ledger.ts'
import { Past } from '../../../src/daemon/governance/past.ts'
import { collect } from '../../support/collect.ts'

const standing = (id: string, identity: string) => ({
  type: 'approval.standing',
  body: {
    id,
    identity,
    scope: 'policy',
    granted_at: new Date().toISOString(),
    expires_at: new Date(Date.now() + 60_000).toISOString(),
  },
  seq: 1,
})
const quarantined = (failure: string) => ({
  type: 'server.quarantined',
  body: { server: 'files', origin: null, owner: null, failure, reason: 'a test' },
  seq: 2,
})

test.each([
  ['MP-FH-005', ['b']],
  ['MP-FH-008', ['b']],
  ['storm', ['a', 'b']],
  ['operator', ['a', 'b']],
])('a server that is halted as %s leaves the approvals %j', (failure, left) => {
  const past = new Past(new Ledger({ provisionalAfter: 10, trustedAfter: 50 }))
  past.fold(standing('a', 'files/resources/read@1#1'))
  past.fold(standing('b', 'files2/resources/read@1#1'))
  past.fold(quarantined(failure))
  expect(past.standing(0).standing.map(({ id }) => id)).toEqual(left)
})

test('an approval whose time is over is not kept', async () => {
  const past = new Past(new Ledger({ provisionalAfter: 10, trustedAfter: 50 }))
  const over = (n: number): WeakRef<object> => {
    const record = standing(`a${n}`, 'files/read@1#1')
    record.body.expires_at = new Date(Date.now() - 1).toISOString()
    past.fold(record)
    return new WeakRef(record.body)
  }
  const kept = Array.from({ length: 100 }, (_, n) => over(n))
  past.fold(standing('last', 'files/read@1#1'))
  await new Promise((resolve) => setImmediate(resolve)) // what a turn has looked at lives as long as it
  collect()
  expect(kept.filter((body) => body.deref() !== undefined)).toEqual([])
  expect(past.standing(0).standing.map(({ id }) => id)).toEqual(['last'])
})

test('approvals end for good where the clock is behind the last record, also behind a snapshot', () => {
  const past = new Past(new Ledger({ provisionalAfter: 10, trustedAfter: 50 }))
  const ahead = { ...standing('a', 'files/read@1#1'), at: new Date(Date.now() + 60_000).toISOString() }
  past.fold(ahead)
  const next = new Past(new Ledger({ provisionalAfter: 10, trustedAfter: 50 }))
  next.load(JSON.parse(JSON.stringify(past.save())))
  expect(next.standing(0)).toEqual({ standing: [], over: ['a'] })
  expect(next.save().standing).toEqual([])
})

test('a clock that went back takes what stood then, and nothing that is given later; one that was only adjusted takes nothing', () => {
  const past = new Past(new Ledger({ provisionalAfter: 10, trustedAfter: 50 }))
  const minute = 60_000
  const at = (minutes: number): string => new Date(Date.now() + minutes * minute).toISOString()
  const given = (id: string, minutes: number) => {
    const record = standing(id, 'files/read@1#1')
    record.body.granted_at = at(minutes)
    record.body.expires_at = at(minutes + 60)
    return { ...record, at: at(minutes) }
  }
  const event = (minutes: number) => ({ type: 'daemon.started', body: {}, seq: 3, at: at(minutes) }) as const
  past.fold(given('ahead', 600_000)) // by a clock that was a year ahead
  past.fold(event(600_045))
  past.fold(event(-10))
  past.fold(given('later', -10))
  past.fold(event(-10.01))
  const next = new Past(new Ledger({ provisionalAfter: 10, trustedAfter: 50 }))
  next.load(JSON.parse(JSON.stringify(past.save())))
  const { standing: stands, over } = next.standing(0)
  expect(over).toEqual(['ahead'])
  expect(stands.map(({ id, expiresAt }) => [id, Math.round(expiresAt / minute)])).toEqual([['later', 50]])
})
