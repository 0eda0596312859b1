import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { ownAddresses, refusedRange } from '../../src/lib/address-ranges.ts'

const none = new Set<string>()
const outside = (address: string): string | null => refusedRange(address, { private: false, own: none })
const inside = (address: string): string | null => refusedRange(address, { private: true, own: none })

const open: readonly (readonly [string, ...string[]])[] = [
  ['loopback', '127.0.0.1', '127.255.255.255', '::1', '0:0:0:0:0:0:0:1'],
  ['private', '10.0.0.5', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  ['shared', '100.64.0.1', '100.127.255.255'],
  ['link-local', '169.254.1.1', 'fe80::1', 'febf::1'],
  ['unique-local', 'fc00::1', 'fdff:ffff::1'],
]

test.each(open)('%s is refused, and opened by `private: true`', (range, ...addresses) => {
  for (const address of addresses)
    expect([address, outside(address), inside(address)]).toEqual([address, range, null])
})

const shut: readonly (readonly [string, ...string[]])[] = [
  ['unspecified', '0.0.0.0', '0.1.2.3', '::'],
  ['broadcast', '255.255.255.255'],
  ['multicast', '224.0.0.1', '239.255.255.255', 'ff02::1'],
  ['benchmarking', '198.18.0.1', '198.19.255.255', '2001:2::1'],
  ['documentation', '192.0.2.1', '198.51.100.7', '203.0.113.9', '2001:db8::1', '3fff::1'],
  [
    'reserved',
    '192.0.0.8',
    '192.88.99.1',
    '240.0.0.1',
    '254.1.1.1',
    '4000::1',
    '1::1',
    '5f00::1',
    '2001:1::1',
  ],
  ['site-local', 'fec0::1'],
  ['discard', '100::1'],
  ['orchid', '2001:10::1', '2001:20::1', '2001:2f::1'],
  ['nat64', '64:ff9b:1::1', '64:ff9b::5db8:d822'],
  ['nat64-loopback', '64:ff9b::7f00:1'],
  ['nat64-private', '64:ff9b::a00:5'],
  ['v4-mapped', '::ffff:93.184.216.34', '::ffff:5db8:d822'],
  ['v4-mapped-loopback', '::ffff:127.0.0.1', '::ffff:7f00:1'],
  ['v4-mapped-metadata', '::ffff:a9fe:a9fe'],
  ['v4-translated-loopback', '::ffff:0:7f00:1'],
  ['v4-compatible', '::5db8:d822'],
  ['v4-compatible-loopback', '::7f00:1'],
  ['6to4', '2002:5db8:d822::1'],
  ['6to4-loopback', '2002:7f00:1::'],
  ['teredo', '2001:0:1:2:3:4:a247:27dd'],
  ['teredo-loopback', '2001:0:1:2:3:4:80ff:fffe'],
  [
    'metadata',
    '169.254.169.254',
    '169.254.170.2',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '100.96.0.96',
  ],
  ['metadata', 'fd00:ec2::254', 'fd20:ce::254', 'fd00:c1::a9fe:a9fe', 'fd00:42::42'],
  [
    'malformed',
    'localhost',
    '127.1',
    '0177.0.0.1',
    '2130706433',
    '1.2.3.4.',
    '[::1]',
    'fe80::1%lo',
    '',
    '::1%0',
  ],
]

test.each(shut)('%s is refused whatever the entry says', (range, ...addresses) => {
  for (const address of addresses)
    expect([address, outside(address), inside(address)]).toEqual([address, range, range])
})

test('addresses that anybody may have are dialled', () => {
  for (const address of [
    '93.184.216.34',
    '1.1.1.1',
    '9.255.255.255',
    '172.32.0.1',
    '2606:2800:220:1::1',
    '2a00::1',
  ])
    expect([address, outside(address)]).toEqual([address, null])
})

test('an address of this machine is its own, and opened by `private: true`', () => {
  const own = new Set(['93.184.216.34'])
  expect(refusedRange('93.184.216.34', { private: false, own })).toBe('own')
  expect(refusedRange('93.184.216.34', { private: true, own })).toBeNull()
  const mine = ownAddresses()()
  const addresses = Object.values(networkInterfaces()).flatMap((them) => them ?? [])
  for (const { address, family } of addresses) if (family === 'IPv4') expect(mine.has(address)).toBe(true)
})
