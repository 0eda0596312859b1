// Probe 148: what a server was refused on its way out is told, also where nothing of it left the sandbox.
import { readFile } from 'node:fs/promises'
import { doorTarget } from '../../sandbox/spec.ts'
import { stops, stopsOrFinds } from '../attempt.ts'
import { withoutNetworkThereIs } from '../gvisor/inapplicable.ts'
import type { Probe } from '../probe.ts'
import { callNumber } from '../lab/removal.ts'
import { ask, connects, hearsOf, types } from './asking.ts'

const nobody = ['192.0.2.1', '2001:db8::1'] as const
/** The kernel may let these through: nobody is there who hears them, and it is told all the same. */
const groups = ['224.0.0.251', 'ff02::fb'] as const
const turnedAway = ['ECONNREFUSED', 'ENETUNREACH', 'EAFNOSUPPORT', 'EADDRNOTAVAIL'] as const

const why = [
  'name-not-listed',
  'port-not-listed',
  'no-door 192.0.2.1',
  'udp 192.0.2.1',
  'udp 224.0.0.251',
  'socket:raw',
  'local \\x00sallyport-unbound',
  'second-notices',
] as const

/** Where the sandbox has IPv6, which not every kernel has. */
const whyOfSix = ['no-door 2001:db8::1', 'udp 2001:db8::2', 'udp ff02::fb'] as const

const whyIn = async (pid: number): Promise<readonly string[]> => {
  const addresses = await readFile(`/proc/${pid}/net/if_inet6`, 'utf8').catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return ''
      throw error
    },
  )
  return addresses === '' ? why : [...why, ...whyOfSix]
}

const [inet, raw, icmp] = ['2', '3', '1']

export const toldProbes: readonly Probe[] = [
  {
    id: 'network.told',
    number: 148,
    group: 'network',
    protects: 'Nothing that a server is refused on its way out goes unheard.',
    control: 'told',
    isAlone: true,
    within: (lab) => ({ ...lab, openDoor: lab.doors.heard }),
    trial({ spec, wayOut }) {
      if (spec.network.mode === 'none')
        return withoutNetworkThereIs('nobody who hears', 'nothing is there to be refused by')
      const { host, port } = wayOut.grant
      return {
        expected: `a word of each: ${why.join(', ')}, and of the same in IPv6`,
        attempts: [
          ask('unheard-of.sallyport.test', types.A, ['ENOENT']),
          connects(host, port === 65_535 ? 1 : port + 1),
          ...nobody.map((address) => stops(['tcp', address, '443'], turnedAway, `tcp ${address} 443`)),
          stops(['datagram', '192.0.2.1', '53'], ['EPERM'], 'a datagram to another name server'),
          stops(['datagram', '2001:db8::2', '53'], ['EPERM', ...turnedAway], 'a datagram of IPv6'),
          ...groups.map((address) =>
            stopsOrFinds(
              ['datagram', address, '5353'],
              ['EPERM', ...turnedAway],
              () => null,
              `a datagram to the group ${address}`,
            ),
          ),
          stops(
            ['reach', `${callNumber('socket')}`, inet, raw, icmp],
            ['EPROTONOSUPPORT', 'EPERM', 'EAFNOSUPPORT'],
            'a raw socket',
          ),
          stops(['local', '@sallyport-unbound'], ['ECONNREFUSED'], 'a socket of a name that nobody has'),
          // What the relay alone may tell, and it does so from before the server is there.
          stops(
            ['exchange', doorTarget, '0', 'SP1 notices\\nname forged.sallyport.test 1\\n'],
            ['ECONNRESET', 'EPIPE'],
            'a word of the relay’s',
          ),
          hearsOf('what the door heard', wayOut, ({ pid }) => whyIn(pid)),
        ],
        outside: [stops(['datagram', '127.0.0.1', '9'], [], 'a datagram of which nobody hears')],
      }
    },
  },
]
