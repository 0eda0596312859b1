// Probes 77 to 79 and 93: which kinds of socket and of shared memory there are.
import type { Probe } from '../probe.ts'
import { callProbe } from './calls.ts'

const families = {
  AX25: 3,
  IPX: 4,
  APPLETALK: 5,
  KEY: 15,
  PACKET: 17,
  RDS: 21,
  CAN: 29,
  TIPC: 30,
  BLUETOOTH: 31,
  ALG: 38,
  NFC: 39,
  VSOCK: 40,
  QIPCRTR: 42,
  SMC: 43,
  XDP: 44,
}
const [inet, inet6, netlink] = [2, 10, 16]
const [stream, datagram, raw, seqpacket] = [1, 2, 3, 5]

export const socketProbes: readonly Probe[] = [
  callProbe(
    77,
    'network.families',
    'No family of sockets is there that leaves the sandbox’s network: the hypervisor’s, Bluetooth, packets.',
    [
      ...Object.values(families).map((family) => ['socket', family, datagram, 0] as const),
      ['socket', families.VSOCK, stream, 0],
      ['socket', families.PACKET, datagram | 0o2004000, 0],
      ['socket', inet, raw, 1],
      ['socket', inet6, raw, 58],
      ['socketpair', inet, stream, 0],
      ['socketpair', families.TIPC, stream, 0],
    ],
    'network',
  ),
  callProbe(
    78,
    'network.netlink',
    'Of the kernel’s own channels a server has the one for routes, and no other.',
    [4, 6, 9, 10, 11, 12, 15, 16, 20].map((protocol) => ['socket', netlink, raw, protocol] as const),
    'network',
  ),
  callProbe(
    79,
    'network.protocols',
    'Over the internet families there are TCP and UDP, and nothing else.',
    [
      ['socket', inet, stream, 262],
      ['socket', inet, stream, 132],
      ['socket', inet, datagram, 136],
      ['socket', inet, datagram, 1],
      ['socket', inet6, datagram, 58],
      // Raw, under the protocols that the two kinds above are allowed with, and each of those with the other's.
      ...[inet, inet6].flatMap((family) =>
        [
          [raw, 0],
          [raw, 6],
          [raw, 17],
          [raw, 255],
          [seqpacket, 0],
          [stream, 17],
          [datagram, 6],
        ].map(([kind = 0, protocol = 0]) => ['socket', family, kind, protocol] as const),
      ),
    ],
    'network',
  ),
  callProbe(
    93,
    'ipc.system-v',
    'A server has no System V memory, queue or semaphore, anybody else’s or its own.',
    [
      ['shmget'],
      ['shmat'],
      ['shmdt'],
      ['shmctl'],
      ['semget'],
      ['semop'],
      ['semtimedop'],
      ['semctl'],
      ['msgget'],
      ['msgsnd'],
      ['msgrcv'],
      ['msgctl'],
    ],
    'ipc',
  ),
]
