// Each of the eight checks refuses on its own, in their order; a permit is good for one use.
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  type Binding,
  type Boundary,
  type Permit,
  type PermitCheck,
  permitChecks,
  Permits,
} from '../../src/call/permit.ts'

const binding: Binding = {
  identity: 'files/read_file@1.0.0#1',
  argumentsDigest: 'a'.repeat(64),
  bytesDigest: 'b'.repeat(64),
  sideEffects: ['read'],
  resourceScopes: ['/workspace'],
  lineage: 'task-7',
  approval: null,
  policyVersion: 'v1',
  trustEpoch: 0,
  principal: '1000',
}
const boundary: Boundary = { ...binding, contains: () => true, isEligible: true, hold: null }
let now = 0
let permits: Permits
beforeEach(() => {
  now = 1000
  permits = new Permits(() => now)
})

const spoil: Record<(typeof permitChecks)[number], (permit: Permit) => [Permit, Boundary]> = {
  authenticity: (permit) => [
    { ...copyOf(permit), binding: { ...binding, principal: '0' } },
    { ...boundary, principal: '0' },
  ],
  expiry: (permit) => {
    now += 30_000
    return [permit, boundary]
  },
  identity: (permit) => [permit, { ...boundary, identity: 'files/write_file@1.0.0#1' }],
  arguments: (permit) => [permit, { ...boundary, bytesDigest: 'c'.repeat(64) }],
  'side-effects': (permit) => [permit, { ...boundary, contains: () => false }],
  lineage: (permit) => [permit, { ...boundary, lineage: 'task-8' }],
  trust: (permit) => [permit, { ...boundary, trustEpoch: 1 }],
  checkpoint: (permit) => [permit, { ...boundary, hold: 'audit' }],
}

const parts: readonly (readonly [keyof Boundary, PermitCheck, Partial<Boundary>])[] = [
  ['identity', 'identity', { identity: 'files/read_file@1.0.0#2' }],
  ['principal', 'identity', { principal: '1001' }],
  ['argumentsDigest', 'arguments', { argumentsDigest: 'c'.repeat(64) }],
  ['bytesDigest', 'arguments', { bytesDigest: 'c'.repeat(64) }],
  ['sideEffects', 'side-effects', { sideEffects: ['read', 'write'] }],
  ['resourceScopes', 'side-effects', { resourceScopes: ['/workspace', '/tmp'] }],
  ['contains', 'side-effects', { contains: () => false }],
  ['lineage', 'lineage', { lineage: null }],
  ['trustEpoch', 'trust', { trustEpoch: 1 }],
  ['policyVersion', 'trust', { policyVersion: 'v2' }],
  ['isEligible', 'trust', { isEligible: false }],
  ['hold', 'checkpoint', { hold: 'audit' }],
]

/** Every member, with another value. */
const forged: readonly Partial<Binding>[] = [
  { identity: 'files/write_file@1.0.0#1' },
  { argumentsDigest: 'c'.repeat(64) },
  { bytesDigest: 'c'.repeat(64) },
  { sideEffects: ['read', 'write'] },
  { resourceScopes: [] },
  { lineage: null },
  { approval: 'a-1' },
  { policyVersion: 'v2' },
  { trustEpoch: 1 },
  { principal: '0' },
]

describe('a permit', () => {
  test.each(parts)('is refused where %s alone is not what it was issued for: %s', (_part, check, world) => {
    expect(permits.spend(permits.issue({ ...binding }, 30_000), { ...boundary, ...world })).toBe(check)
  })

  test.each(forged)('that was changed is none, though the world agrees: %j', (change) => {
    expect(Object.keys(binding)).toHaveLength(forged.length)
    const permit = permits.issue({ ...binding }, 30_000)
    const other = { ...copyOf(permit), binding: { ...permit.binding, ...change } }
    expect(permits.spend(other, { ...boundary, ...change })).toBe('authenticity')
  })

  test('is none with another’s seal, another’s id or a longer life', () => {
    const issue = (): Permit => copyOf(permits.issue({ ...binding }, 30_000))
    expect(permits.spend({ ...issue(), mac: issue().mac }, boundary)).toBe('authenticity')
    expect(permits.spend({ ...issue(), id: issue().id }, boundary)).toBe('authenticity')
    expect(permits.spend({ ...issue(), expiresAt: 1e9 }, boundary)).toBe('authenticity')
    expect(permits.spend({ ...issue(), mac: '' }, boundary)).toBe('authenticity')
    expect(permits.spend(issue(), boundary)).toBeNull() // a true copy is as good as it
    const { id, expiresAt } = permits.issue(binding, 30_000)
    expect(permits.spend({ id, expiresAt, binding } as Permit, boundary)).toBe('authenticity')
  })

  test('is none where any letter of it is another, though the world agrees', () => {
    const leaf = fc
      .constantFrom(
        'id expiresAt mac binding.identity binding.argumentsDigest binding.bytesDigest binding.sideEffects.0',
        'binding.resourceScopes.0 binding.lineage binding.policyVersion binding.trustEpoch binding.principal',
      )
      .chain((paths) => fc.constantFrom(...paths.split(' ')))
      .map((path) => path.split('.'))
    const piece = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3 }),
      fc.constantFrom('\0', '\ud800', 'a', 'A', '0', 'zz'),
    )
    fc.assert(
      fc.property(leaf, fc.nat(100), fc.nat(2), piece, fc.boolean(), (path, at, cut, put, isUpper) => {
        now = 1000
        const permit = permits.issue({ ...binding }, 30_000)
        const forged = structuredClone(copyOf(permit)) as unknown as Record<string | number, unknown>
        let place = forged
        for (const step of path.slice(0, -1)) place = place[step] as typeof place
        const last = path.at(-1) ?? ''
        const value = place[last]
        const from = at % (String(value).length + 1)
        const text = `${String(value).slice(0, from)}${put}${String(value).slice(from + cut)}`
        place[last] = typeof value === 'number' ? value + at + 1 : isUpper ? text.toUpperCase() : text
        fc.pre(place[last] !== value)
        const told = forged['binding'] as Binding
        expect(permits.spend(forged as unknown as Permit, { ...boundary, ...told })).toBe('authenticity')
      }),
      {
        numRuns: 300,
        examples: [
          [['mac'], 0, 0, '', true],
          [['mac'], 32, 0, 'zz', false],
        ],
      },
    )
  })

  test('lets the call through that it was issued for', () => {
    expect(permits.spend(permits.issue(binding, 30_000), boundary)).toBeNull()
  })

  test.each(permitChecks)('is refused when only %s fails', (check) => {
    const [permit, world] = spoil[check](permits.issue(binding, 30_000))
    expect(permits.spend(permit, world)).toBe(check)
  })

  test('can’t be altered once it is sealed', () => {
    const permit = permits.issue({ ...binding }, 30_000)
    const { mac } = permit
    expect(() => Object.assign(permit, { expiresAt: Infinity })).toThrow(TypeError)
    expect(() => Object.defineProperty(permit, 'mac', { value: '' })).toThrow(TypeError)
    expect(permit.mac).toBe(mac)
    expect(() => Object.assign(permit.binding, { principal: '0' })).toThrow(TypeError)
  })

  test('fails the earlier check first when two fail', () => {
    for (const [n, check] of permitChecks.entries()) {
      for (const later of permitChecks.slice(n + 1)) {
        now = 1000
        const permit = permits.issue(binding, 30_000)
        const [first, firstWorld] = spoil[check](permit)
        const [second, secondWorld] = spoil[later](permit)
        const merged = { ...boundary, ...changed(secondWorld), ...changed(firstWorld) }
        expect(
          permits.spend(check === 'authenticity' ? first : second, merged),
          `${check} before ${later}`,
        ).toBe(check)
      }
    }
  })

  test('is good once', () => {
    const permit = permits.issue(binding, 30_000)
    expect(permits.spend(permit, boundary)).toBeNull()
    expect(permits.spend(permit, boundary)).toBe('authenticity')
  })

  test('is gone after a failed use', () => {
    const permit = permits.issue(binding, 30_000)
    expect(permits.spend(permit, { ...boundary, hold: 'audit' })).toBe('checkpoint')
    expect(permits.spend(permit, boundary)).toBe('authenticity')
  })

  test('of another life of the daemon is no permit', () => {
    expect(permits.spend(new Permits(() => now).issue(binding, 30_000), boundary)).toBe('authenticity')
  })

  test('is gone when it is revoked', () => {
    const permit = permits.issue(binding, 30_000)
    expect(permits.revoke(({ binding: { identity } }) => identity === binding.identity)).toEqual([permit.id])
    expect(permits.list()).toEqual([])
    expect(permits.spend(permit, boundary)).toBe('authenticity')
  })

  test('that waits for its dispatch is good for that once, until it is revoked or its time is over', () => {
    const kept = () => {
      const permit = permits.issue(binding, 30_000)
      expect(permits.spend(permit, boundary)).toBeNull()
      permits.keep(permit)
      return permit.id
    }
    const once = kept()
    expect(permits.redeem(once)).toBeNull()
    expect(permits.redeem(once)).toBe('authenticity')
    const revoked = kept()
    expect(permits.revoke(() => true)).toEqual([revoked])
    expect(permits.redeem(revoked)).toBe('authenticity')
    const late = kept()
    now += 30_000
    expect(permits.redeem(late)).toBe('expiry')
    expect(permits.redeem(late)).toBe('authenticity')
  })
})

/** As somebody else might put it together who was shown all of it. */
const copyOf = ({ id, expiresAt, binding: bound, mac }: Permit): Permit => ({
  id,
  expiresAt,
  binding: bound,
  mac,
})

/** What differs from the good boundary. */
function changed(world: Boundary): Partial<Boundary> {
  return Object.fromEntries(
    Object.entries(world).filter(([key, value]) => value !== boundary[key as keyof Boundary]),
  )
}
