// The values of one call, once it is over.
import { expect, test } from 'vitest'
import { leaseOf } from '../../src/credentials/lease.ts'
import type { Injection } from '../../src/schema/credentials.ts'

test('at the end of a lease nothing is given of it any more, and its values are zero', () => {
  const value = Buffer.from('a secret')
  const injection = { use: 'api', inject: 'env', as: 'API_KEY' } as Injection
  const request = {
    permit: 'p-1',
    call: 'c-1',
    names: ['api'],
    deadlineMs: 60_000,
    attribution: 'call',
  } as const
  const lease = leaseOf(request, [{ injection, value }], new AbortController())
  expect(lease.environment()).toEqual({ API_KEY: 'a secret' })
  lease.end()
  expect([lease.environment(), [...value].every((byte) => byte === 0)]).toEqual([{}, true])
})
