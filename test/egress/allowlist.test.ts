import { expect, test } from 'vitest'
import { grantFor, isPattern, matches } from '../../src/egress/allowlist.ts'
import { parseAuthority, parseEndpoint, parsePort } from '../../src/egress/authority.ts'
import type { EgressGrant } from '../../src/schema/egress.ts'
import { hostilePorts, shown } from '../support/hostile-hosts.ts'

const grant = (host: string, port: number): EgressGrant => ({
  host,
  port,
  address: null,
  private: false,
  tls: true,
  reason: 'r',
})

test('a pattern takes one label or more in front of its name, never the name itself or what merely ends like it', () => {
  expect(matches('*.example.com', 'a.example.com')).toBe(true)
  expect(matches('*.example.com', 'a.b.example.com')).toBe(true)
  expect(matches('*.example.com', 'example.com')).toBe(false)
  expect(matches('*.example.com', 'aexample.com')).toBe(false)
  expect(matches('*.example.com', 'evil-example.com')).toBe(false)
  expect(matches('*.example.com', 'a.example.com.evil.net')).toBe(false)
  expect(matches('example.com', 'a.example.com')).toBe(false)
})

test('name and port are exact, and the refusal says which of the two is not there', () => {
  const grants = [grant('api.example.com', 443), grant('*.example.com', 8443)]
  expect(grantFor(grants, { host: 'api.example.com', port: 443 })).toBe(grants[0])
  expect(grantFor(grants, { host: 'api.example.com', port: 8443 })).toBe(grants[1])
  expect(() => grantFor(grants, { host: 'b.example.com', port: 443 })).toThrow('port-not-listed')
  expect(() => grantFor(grants, { host: 'example.com', port: 443 })).toThrow('name-not-listed')
  expect(() => grantFor([], { host: 'example.com', port: 443 })).toThrow('name-not-listed')
})

test('an exact name stands before a pattern, and a longer pattern before a shorter one', () => {
  const [wide, narrow, exact] = [
    grant('*.example.com', 443),
    { ...grant('*.eu.example.com', 443), private: true },
    grant('a.eu.example.com', 443),
  ]
  expect(grantFor([wide, narrow, exact], { host: 'a.eu.example.com', port: 443 })).toBe(exact)
  expect(grantFor([wide, narrow, exact], { host: 'b.eu.example.com', port: 443 })).toBe(narrow)
})

test('a pattern of one label, of an address or in another spelling is none', () => {
  for (const it of [
    '*.com',
    '*',
    '*.',
    '*.*.example.com',
    'a.*.com',
    'A.com',
    'a.com.',
    '127.0.0.1',
    '*.0.0.1',
  ])
    expect([it, isPattern(it)]).toEqual([it, false])
  for (const it of ['localhost', 'example.com', '*.example.com']) expect(isPattern(it)).toBe(true)
})

test.each(hostilePorts.map((text) => [shown(text), text]))('group 33: %s is no port', (_title, text) => {
  expect(parsePort(text)).toBeNull()
  expect(parseEndpoint('allowed.com', text)).toBeNull()
  expect(parseAuthority(`allowed.com:${text}`, 443)).toBeNull()
})

test('ports from 1 to 65535 are taken as they are written', () => {
  for (const port of [1, 9, 80, 443, 10_000, 65_535]) expect(parsePort(`${port}`)).toBe(port)
  expect(parseAuthority('allowed.com', null)).toBeNull()
  expect(parseAuthority('Allowed.com', 80)).toEqual({ host: 'allowed.com', port: 80 })
})
