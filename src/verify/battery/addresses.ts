// Probe 134: a name that was granted for the world outside leads to no address of this machine, its networks or its cloud.
import { proxyPort } from '../../lib/own-variables.ts'
import { finds, stopsOrFinds, type Attempt } from '../attempt.ts'
import { nameAt } from '../lab/behind.ts'
import type { Probe, Scene } from '../probe.ts'
import { atDoor, established, toNobody } from './asking.ts'

/** Word of the refusal -> addresses that are refused by it: some of each range, and of each way to write one within another. */
const inward: Readonly<Record<string, string>> = {
  metadata:
    '169.254.169.254 169.254.170.2 169.254.42.42 169.254.0.23 100.100.100.200 100.100.100.100 100.96.0.96 168.63.129.16 192.0.0.192 ' +
    'fd00:ec2::254 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42 fd7a:115c:a1e0::53',
  unspecified: '0.0.0.0 ::',
  loopback: '127.0.0.1 127.255.0.1 ::1',
  private: '10.0.0.1 172.16.0.1 172.31.255.254 192.168.0.1',
  shared: '100.64.0.1 100.127.255.254',
  'link-local': '169.254.1.1 fe80::1 febf::1',
  'unique-local': 'fc00::1 fd12::1',
  'site-local': 'fec0::1',
  broadcast: '255.255.255.255',
  multicast: '224.0.0.1 239.255.255.250 ff02::1',
  benchmarking: '198.18.0.1 198.19.255.254 2001:2::1',
  documentation: '192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1',
  discard: '100::1 100:0:0:1::1',
  nat64: '64:ff9b:1::1',
  orchid: '2001:10::1 2001:20::1 2001:30::1',
  reserved:
    '192.0.0.1 192.88.99.1 192.31.196.1 192.52.193.1 192.175.48.1 240.0.0.1 2001:1::1 2620:4f:8000::1 5f00::1 4000::1',
  'v4-mapped-loopback': '::ffff:127.0.0.1 ::ffff:7f00:1',
  'v4-mapped-metadata': '::ffff:169.254.169.254',
  'v4-translated-loopback': '::ffff:0:7f00:1',
  'nat64-metadata': '64:ff9b::a9fe:a9fe',
  '6to4-private': '2002:a00:1::1',
  'teredo-loopback': '2001::80ff:fffe',
  'v4-compatible-loopback': '::7f00:1',
  malformed: '127.1',
}

/** Refused by that word before anything is dialled: by any other, it was not this judgement that stood there. */
const refused = (host: string, port: number, word: string, label: string): Attempt =>
  finds(
    ['exchange', '127.0.0.1', `${proxyPort}`, `CONNECT ${host}:${port} HTTP/1.1\\r\\n\\r\\n`, established],
    (text) => {
      if (text.includes(`address-refused:${word}\n`)) return null
      return /sallyport: (\S+)/.exec(text)?.[1] ?? (text.slice(0, 40) || 'no answer')
    },
    label,
  )

const towards = ({ wayOut }: Scene): readonly Attempt[] => {
  const { port } = wayOut.grant
  return Object.entries(inward).flatMap(([word, addresses]) =>
    addresses.split(' ').map((address) => refused(nameAt(address), port, word, `a name of ${address}`)),
  )
}

export const addressProbes: readonly Probe[] = [
  {
    id: 'network.inward',
    number: 134,
    group: 'network',
    protects: 'No name leads to this machine, to its networks, or to what gives out its identity in a cloud.',
    control: 'addresses',
    trial(scene) {
      const { wayOut, spec } = scene
      const { turning, refusedFirst, refusedLast } = wayOut.behind
      const { host, port } = turning
      const isAnswer = (text: string): boolean => text.includes(wayOut.greeting)
      const direct = finds(
        ['exchange', '127.0.0.1', `${port}`, 'GET / HTTP/1.1\\r\\n\\r\\n'],
        (text) => (isAnswer(text) ? 'the server answers' : null),
        'an address of this machine, without a proxy',
      )
      if (spec.network.mode === 'none')
        return {
          expected: 'nobody there: the profile has no network',
          attempts: [...towards(scene), direct].map(toNobody),
          outside: [direct],
        }
      return {
        expected:
          'a refusal of each for what its address is, one lookup for a connection, and no address that is refused',
        attempts: [
          ...towards(scene),
          finds(
            atDoor(host, port),
            (text) => (isAnswer(text) ? null : 'it was looked up more than once'),
            'a name whose address is another one as soon as it was judged',
          ),
          finds(
            atDoor(refusedFirst.host, port),
            (text) => (isAnswer(text) ? null : `no answer: ${text.slice(0, 60)}`),
            'a name of two addresses, of which the first is refused',
          ),
          stopsOrFinds(
            atDoor(refusedLast.host, port),
            ['ECONNRESET', 'EPIPE'],
            (text) => (isAnswer(text) ? 'the server answers' : null),
            'a name of two addresses, of which the last is refused and the first leads to nobody',
          ),
        ],
        outside: [direct],
      }
    },
  },
]
