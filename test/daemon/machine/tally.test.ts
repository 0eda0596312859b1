// A flood of connections is counted, and not one of them is lost from the count.
import { expect, test } from 'vitest'
import { Tally } from '../../../src/daemon/machine/tally.ts'
import type { EgressEvent } from '../../../src/schema/egress.ts'

const event = (more: Partial<EgressEvent> = {}): EgressEvent => ({
  kind: 'closed',
  connection: '1',
  host: 'api.example.org',
  port: 443,
  address: null,
  verdict: 'ended',
  reason: null,
  bytesUp: 1,
  bytesDown: 2,
  durationMs: 3,
  swapped: [],
  redacted: [],
  count: 1,
  ...more,
})

test('a thousand in one moment are few, and add up to a thousand', () => {
  const told: EgressEvent[] = []
  {
    using tally = new Tally((it) => told.push(it))
    for (let n = 0; n < 1000; n++)
      tally.add(event(n % 2 === 0 ? {} : { swapped: ['github'], host: 'b.example.org' }))
    expect(told.length).toBeLessThan(110)
    expect(told.every(({ count }) => count === 1)).toBe(true)
  }
  expect(told.length).toBeLessThan(115)
  expect(told.reduce((sum, { count }) => sum + count, 0)).toBe(1000)
  expect(told.reduce((sum, { bytesDown }) => sum + bytesDown, 0)).toBe(2000)
  expect(told.at(-1)).toMatchObject({ swapped: ['github'] })
})

test('a thousand different ones are not kept apart for ever', () => {
  const told: EgressEvent[] = []
  {
    using tally = new Tally((it) => told.push(it))
    for (let n = 0; n < 1000; n++) tally.add(event({ host: `h${n}.example.org` }))
  }
  expect(told.length).toBeLessThan(180)
  expect(told.reduce((sum, { count }) => sum + count, 0)).toBe(1000)
})
