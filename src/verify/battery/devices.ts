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
/** What an engine puts there and cannot leave out: a link that leads nowhere, and the null device under another name */
const engineNodes = ['ptmx', 'tty']
const engineNote = 'ptmx leads nowhere and tty is the null device: an engine cannot leave them out'
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
    trial: ({ driver }) => {
      const known = driver === 'docker' ? [...ownNodes, ...engineNodes] : ownNodes
      return {
        expected: known.join(' '),
        attempts: [
          finds(['list', '/dev'], (text) => amiss(words(text).filter((name) => !known.includes(name)))),
        ],
        ...(driver === 'docker' ? { note: engineNote } : {}),
      }
    },
  },
  {
    id: 'devices.of-the-host',
    number: 39,
    group: 'devices',
    protects: 'Memory, disks, terminals and virtual machines of the host have no node.',
    control: 'devices',
    trial: ({ driver }) => ({
      expected: 'ENOENT for each',
      attempts: nodes
        .filter((name) => driver !== 'docker' || !engineNodes.includes(name))
        .map((name) => stops(['stat', `/dev/${name}`], ['ENOENT'])),
    }),
  },
]
