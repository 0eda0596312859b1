import { beforeAll, describe, expect, test } from 'vitest'
import { runApart } from '../support/apart.ts'

interface Outcome {
  readonly kind: string
  readonly reason: string | null
  readonly address: string | null
  readonly queries: readonly string[]
  readonly dialled: number
  readonly ms: number
}

describe('in a network of its own, with a name server of the test’s', () => {
  let outcomes: Record<string, Outcome> = {}
  beforeAll(async () => {
    outcomes = (await runApart(
      'egress/apart/names.ts',
      '127.0.0.1 localhost\n93.184.216.40 other.test LISTED.test # a comment listed.test\n',
    )) as Record<string, Outcome>
  }, 60_000)

  const once = ['A udp', 'AAAA udp']
  const goesTo = (name: string, address: string): void =>
    expect([name, outcomes[name]]).toMatchObject([
      name,
      { kind: 'opened', reason: null, address, dialled: 1 },
    ])
  const isRefused = (name: string, reason: string): void =>
    expect([name, outcomes[name]]).toMatchObject([
      name,
      { kind: 'refused', reason, address: null, dialled: 0 },
    ])

  test('a public address is dialled, and its name asked for once', () => {
    goesTo('public.test', '93.184.216.34')
    expect(outcomes['public.test']?.queries).toEqual(once)
  })

  test('group 35: a name that rebinds is dialled where it was judged, and refused when it leads inwards', () => {
    goesTo('rebinding.test', '93.184.216.34')
    expect(outcomes['rebinding.test']?.queries).toEqual(once)
    isRefused('rebinding.test again', 'address-refused:loopback')
    expect(outcomes['rebinding.test again']?.queries).toEqual(once)
  })

  test('group 35: of a mixed answer, what must not be dialled is dropped', () => {
    goesTo('mixed.test', '2606:2800:220:1::1')
  })

  test('group 35: a CNAME to an internal name is judged by its address, and a chain that ends outside is fine', () => {
    isRefused('alias.test', 'address-refused:private')
    goesTo('chain.test', '93.184.216.34')
  })

  test('group 36: an allowed name with an address within is refused, with `private: true` it is dialled', () => {
    isRefused('private.test', 'address-refused:private')
    goesTo('own.test', '127.0.0.1')
  })

  test('groups 18, 19 and 37: metadata and wrapped addresses are refused as what they are', () => {
    isRefused('metadata.test', 'address-refused:metadata')
    isRefused('wrapped.test', 'address-refused:nat64-loopback')
  })

  test('a resolver that is slow, broken or knows nothing is a failure with its word', () => {
    isRefused('slow.test', 'dns-timeout')
    // Its deadline is three seconds; the sandbox's whole patience would be ten.
    expect(outcomes['slow.test']?.ms).toBeLessThan(10_000)
    isRefused('gone.test', 'name-not-found')
    isRefused('empty.test', 'name-not-found')
    isRefused('broken.test', 'dns-failed')
  })

  test('a server that never answers for one family does not hold up the other until its deadline', () => {
    goesTo('half.test', '93.184.216.34')
  })

  test('an alias that leads to no address is no address, and holds nobody to the other family’s moment', () => {
    isRefused('dangling.test', 'name-not-found')
    goesTo('waiting.test', '2606:2800:220:1::1')
  })

  test('a truncated answer is asked for again over TCP, and a huge one is judged as far as it is of use', () => {
    goesTo('truncated.test', '93.184.216.34')
    expect(outcomes['truncated.test']?.queries).toContain('A tcp')
    isRefused('huge.test', 'address-refused:private')
  })

  test('a name that is not listed is asked of nobody', () => {
    for (const name of ['secret.attacker.test', 'leak.unlisted.wild.test.evil']) {
      isRefused(name, 'name-not-listed')
      expect(outcomes[name]?.queries).toEqual([])
    }
    expect(outcomes['a.b.wild.test']?.queries).toEqual(once)
  })

  test('an entry with an address asks nobody, and the address is judged as a resolved one is', () => {
    goesTo('pinned.test', '93.184.216.34')
    isRefused('pinned-inside.test', 'address-refused:private')
    goesTo('pinned-home.test', '10.1.2.3')
    isRefused('pinned-metadata.test', 'address-refused:metadata')
    isRefused('pinned-mapped.test', 'address-refused:v4-mapped-loopback')
    for (const [name, { queries }] of Object.entries(outcomes))
      if (name.startsWith('pinned')) expect(queries).toEqual([])
  })

  test('an exact name in /etc/hosts stands before any server’s word', () => {
    goesTo('listed.test', '93.184.216.40')
    expect(outcomes['listed.test']?.queries).toEqual([])
  })

  test('an address that does not answer has its share of the time, and the next is dialled', () => {
    expect(outcomes['full.test']).toBe('93.184.216.34')
  })
})
