// Probes 38 and 39: which devices there are.
import { finds, stops } from '../attempt.ts'
import type { Probe } from '../probe.ts'

const nodes = [
  'mem',
  'kmem',
  'port',
  'kmsg',
  'kvm',
  'fuse',
  'net/tun',
  'vsock',
  'vhost-vsock',
  'vhost-net',
  'loop0',
  'loop-control',
  'sda',
  'vda',
  'nvme0n1',
  'mapper/control',
  'vfio',
  'dri',
  'input',
  'uinput',
  'rtc0',
  'hwrng',
  'watchdog',
  'userfaultfd',
  'snapshot',
  'autofs',
  'cpu/0/msr',
  'tty',
  'tty0',
  'console',
]
const ownNodes = ['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero']
const words = (text: string): string[] => text.split('\n').filter((line) => line !== '')
const amiss = (found: readonly string[]): string | null =>
  found.length === 0 ? null : found.slice(0, 5).join(', ')

export const deviceProbes: readonly Probe[] = [
  {
    id: 'devices.listed',
    number: 38,
    group: 'devices',
    protects: 'In /dev there are five harmless nodes and the streams, and nothing else.',
    control: 'devices',
    trial: () => ({
      expected: ownNodes.join(' '),
      attempts: [
        finds(['list', '/dev'], (text) => amiss(words(text).filter((name) => !ownNodes.includes(name)))),
      ],
    }),
  },
  {
    id: 'devices.of-the-host',
    number: 39,
    group: 'devices',
    protects: 'Memory, disks, terminals and virtual machines of the host have no node.',
    control: 'devices',
    trial: () => ({
      expected: 'ENOENT for each',
      attempts: nodes.map((name) => stops(['stat', `/dev/${name}`], ['ENOENT'])),
    }),
  },
]
