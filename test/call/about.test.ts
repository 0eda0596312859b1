// What records have in common is one object for as long as it says the same, and another one as soon as it does not.
import { expect, test } from 'vitest'
import { Abouts, type Basis, type Target } from '../../src/call/about.ts'

const peer = { uid: 1000, gid: 1000, pid: 1 }
const target = (more: Partial<Target> = {}): Target => ({
  server: 'files',
  kind: 'tool',
  subject: 'read_file',
  identity: 'files/read_file@1.0.0#1',
  principal: '1000',
  peer,
  trust_epoch: 0,
  ...more,
})
const basis = (more: Partial<Basis> = {}): Basis => ({
  session: 's-1',
  declaration: 1,
  policy: 'p1',
  rule: 'rules[0]',
  reason: 'rules[0] allows mcp:*:*',
  trust: 'untrusted',
  ...more,
})

test('the same words are the same objects, and nobody can change them', () => {
  const abouts = new Abouts()
  const about = abouts.of(target(), basis())
  expect(abouts.of(target(), basis())).toBe(about)
  expect(() => Object.assign(about.target, { principal: '0' })).toThrow(TypeError)
  expect(() => Object.assign(about.basis, { policy: 'p0' })).toThrow(TypeError)
})

const others: readonly [Partial<Target>, Partial<Basis>][] = [
  [{ server: 'other' }, {}],
  [{ kind: 'method' }, {}],
  [{ subject: 'write_file' }, {}],
  [{ identity: 'files/read_file@1.0.0#2' }, {}],
  [{ principal: '1001' }, {}],
  [{ peer: { ...peer, pid: 2 } }, {}],
  [{ trust_epoch: 1 }, {}],
  [{}, { session: 's-2' }],
  [{}, { declaration: 2 }],
  [{}, { policy: 'p2' }],
  [{}, { rule: null }],
  [{}, { reason: 'another' }],
  [{}, { trust: 'trusted' }],
]

test.each(others)('other words are never taken for the same: %o %o', (one, two) => {
  const abouts = new Abouts()
  abouts.of(target(), basis())
  expect(abouts.of(target(one), basis(two))).toEqual({ target: target(one), basis: basis(two) })
})

test('it remembers no more than so many', () => {
  const abouts = new Abouts()
  const first = abouts.of(target(), basis())
  for (let n = 0; n < 1001; n++) abouts.of(target(), basis({ session: `s-${n + 2}` }))
  expect(abouts.of(target(), basis())).not.toBe(first)
})
