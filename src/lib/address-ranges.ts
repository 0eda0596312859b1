// What an address is, in one word, where a sandbox must not reach it. The only importer of ipaddr.js.
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { remembered } from './remembered.ts'

const ownMs = 1000
const rememberedAddresses = 256

type Range = readonly [word: string, ...blocks: readonly string[]]

/**
 * Addresses that hand out a machine's identity or are the hypervisor's own: refused whatever the entry says, since
 * entries name hosts and a name is no reason to give away a cloud's credentials.
 */
const metadata: Range = [
  'metadata',
  '169.254.169.0/24', // AWS, Azure, Google, Oracle, DigitalOcean, OpenStack; AWS' resolver and clock
  '169.254.170.0/24', // AWS containers and pods
  '169.254.42.42/32', // Scaleway
  '169.254.0.23/32', // Tencent
  '100.100.100.200/32', // Alibaba
  '100.100.100.100/32', // Tailscale's own
  '100.96.0.96/32', // Volcano
  '168.63.129.16/32', // Azure's host
  '192.0.0.192/32', // Oracle, classic
  'fd00:ec2::/32', // AWS
  'fd20:ce::254/128', // Google
  'fd00:c1::a9fe:a9fe/128', // Oracle
  'fd00:42::42/128', // Scaleway
  'fd7a:115c:a1e0::53/128', // Tailscale's own
]

/** IPv6 that carries an IPv4 address, and where in it: what is judged is the reason's word, never a way through. */
const embedding: readonly (readonly [word: string, block: string, octet: number, mask: number])[] = [
  ['v4-mapped', '::ffff:0:0/96', 12, 0],
  ['v4-translated', '::ffff:0:0:0/96', 12, 0],
  ['nat64', '64:ff9b::/96', 12, 0],
  ['6to4', '2002::/16', 2, 0],
  ['teredo', '2001::/32', 12, 0xff],
]

/** The first range that holds the address names it. */
const ranges: readonly Range[] = [
  ['unspecified', '0.0.0.0/8', '::/128'],
  ['loopback', '127.0.0.0/8', '::1/128'],
  ['private', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
  ['shared', '100.64.0.0/10'],
  ['link-local', '169.254.0.0/16', 'fe80::/10'],
  ['unique-local', 'fc00::/7'],
  ['site-local', 'fec0::/10'],
  ['broadcast', '255.255.255.255/32'],
  ['multicast', '224.0.0.0/4', 'ff00::/8'],
  ['benchmarking', '198.18.0.0/15', '2001:2::/48'],
  ['documentation', '192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24', '2001:db8::/32', '3fff::/20'],
  ['discard', '100::/64', '100:0:0:1::/64'],
  ['nat64', '64:ff9b:1::/48'],
  ['orchid', '2001:10::/28', '2001:20::/28', '2001:30::/28'],
  ['reserved', '192.0.0.0/24', '192.88.99.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.175.48.0/24'],
  ['reserved', '240.0.0.0/4', '2001::/23', '2620:4f:8000::/48', '5f00::/16'],
]

/** What `private: true` opens: networks of this machine and around it, whose members have names of their own. */
const opened = new Set(['loopback', 'private', 'shared', 'link-local', 'unique-local', 'own'])

/** Ranges as they are matched, each family apart. */
const matchable = (them: readonly Range[]) => {
  const blocks = them.flatMap(([word, ...rest]) => rest.map((block) => [word, block] as const))
  const [v6, v4] = [blocks.filter(([, it]) => it.includes(':')), blocks.filter(([, it]) => it.includes('.'))]
  return {
    v4: v4.map(([word, block]) => ({ word, block: ipaddr.IPv4.parseCIDR(block) })),
    v6: v6.map(([word, block]) => ({ word, block: ipaddr.IPv6.parseCIDR(block) })),
  }
}
const metadataRanges = matchable([metadata])
const knownRanges = matchable(ranges)
const embeddingRanges = embedding.map((row) => ({ row, block: ipaddr.IPv6.parseCIDR(row[1]) }))
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
const compatible = ipaddr.IPv6.parseCIDR('::/96')

/**
 * Returns why an address must not be dialled, in one word, or null where it may. `own` are this machine's addresses in
 * canonical form. A text that is no address is `malformed`.
 */
export function refusedRange(
  text: string,
  options: { private: boolean; own: ReadonlySet<string> },
): string | null {
  const address = known(text)
  if (address === null) return 'malformed'
  const word = address.word ?? (options.own.has(address.canonical) ? 'own' : null)
  return word !== null && options.private && opened.has(word) ? null : word
}

/** An address in canonical form, and the range that refuses it to everybody, or null. */
const known = remembered((text): { readonly canonical: string; readonly word: string | null } | null => {
  const address = parse(text)
  return address === null ? null : { canonical: address.toString(), word: classify(address) }
}, rememberedAddresses)

/** Returns a reader of the addresses of this machine's interfaces, in canonical form and at most a second old. */
export function ownAddresses(): () => ReadonlySet<string> {
  let own: ReadonlySet<string> = new Set()
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    if (performance.now() - readAt < ownMs) return own
    const found = Object.values(networkInterfaces()).flatMap((them) => them ?? [])
    own = new Set(found.flatMap(({ address }) => parse(address)?.toString() ?? []))
    readAt = performance.now()
    return own
  }
}

function classify(address: ipaddr.IPv4 | ipaddr.IPv6): string | null {
  const word = within(metadataRanges, address)
  if (word !== null || address instanceof ipaddr.IPv4) return word ?? within(knownRanges, address)
  for (const { row, block } of embeddingRanges)
    if (address.match(block)) return embedded(address, row[2], row[3], row[0])
  const known = within(knownRanges, address)
  if (known !== null) return known
  if (address.match(compatible)) return embedded(address, 12, 0, 'v4-compatible')
  return address.match(globalUnicast) ? null : 'reserved'
}

/** The word for the IPv4 address inside where that is refused itself, which says more, else the word of its wrapping. */
function embedded(address: ipaddr.IPv6, octet: number, mask: number, word: string): string {
  const bytes = address.toByteArray().slice(octet, octet + 4)
  const inner = classify(new ipaddr.IPv4(bytes.map((byte) => byte ^ mask)))
  return inner === null ? word : `${word}-${inner}`
}

function within({ v4, v6 }: ReturnType<typeof matchable>, address: ipaddr.IPv4 | ipaddr.IPv6): string | null {
  const found =
    address instanceof ipaddr.IPv4
      ? v4.find(({ block }) => address.match(block))
      : v6.find(({ block }) => address.match(block))
  return found?.word ?? null
}

function parse(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  return text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text)
    ? ipaddr.IPv6.parse(text)
    : null
}
