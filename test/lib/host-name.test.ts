import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalHost } from '../../src/lib/host-name.ts'
import { validate } from '../../src/schema/validate.ts'
import { hostileHosts, shown } from '../support/hostile-hosts.ts'

const rows = hostileHosts.map((row) => ({ ...row, title: shown(row.text) }))

test.each(rows)('group $group: $title is $outcome', ({ text, outcome }) => {
  const host = canonicalHost(text)
  if (outcome === 'invalid') expect(host).toBeNull()
  else expect(host === 'allowed.com').toBe(outcome === 'listed')
})

const configured = (host: string): boolean =>
  validate('config', {
    version: 1,
    servers: { it: { command: 'node', egress: [{ host, port: 443, reason: 'r' }] } },
  }).ok

test.each(rows.filter(({ text }) => !text.startsWith('*.')))(
  'group $group: a configuration takes $title only where it is canonical',
  ({ text }) => {
    // What the schema cannot say of an A-label, whoever reads the entry must
    const canonical = canonicalHost(text)
    if (canonical === null && /(^|\.)xn--/.test(text)) return
    expect(configured(text)).toBe(canonical === text)
  },
)

test('a configuration of this form is taken when the host is a name', () => {
  expect(configured('allowed.com')).toBe(true)
  expect(configured('*.allowed.com')).toBe(true)
  expect(configured('*.com')).toBe(false)
})

test('letters beyond ASCII become A-labels where they come back unchanged', () => {
  expect(canonicalHost('münchen.de')).toBe('xn--mnchen-3ya.de')
  expect(canonicalHost('xn--mnchen-3ya.de')).toBe('xn--mnchen-3ya.de')
  expect(canonicalHost('XN--MNCHEN-3YA.DE.')).toBe('xn--mnchen-3ya.de')
  expect(canonicalHost('MÜNCHEN.de')).toBeNull()
})

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.domain(),
  fc.ipV4Extended(),
  fc.ipV6(),
  fc.string({ unit: fc.constantFrom(...'aZ09.-_x:%[]@/\\#?* \t\0'.split('')), maxLength: 30 }),
)

test('a canonical name is its own canonical name, and nothing that a URL reads otherwise', () => {
  fc.assert(
    fc.property(text, (it) => {
      const host = canonicalHost(it)
      if (host === null) return
      expect(canonicalHost(host)).toBe(host)
      expect(canonicalHost(`${host}.`)).toBe(host)
      expect(new URL(`http://${host}/`).hostname).toBe(host)
      expect(configured(host)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})

test('every spelling of an address is refused', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4Extended(), fc.ipV4(), fc.ipV6()), (address) => {
      expect(canonicalHost(address)).toBeNull()
      expect(canonicalHost(`${address}.`)).toBeNull()
      expect(canonicalHost(`[${address}]`)).toBeNull()
    }),
    { numRuns: 1000 },
  )
})
