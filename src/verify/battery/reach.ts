// Probes 71 to 76, 80, 85, 91 to 99 and 110: whom a server reaches, and what it shares with whom.
import { finds, stops, type Attempt } from '../attempt.ts'
import type { Canaries } from '../lab/canaries.ts'
import type { Probe, Scene, Trial } from '../probe.ts'

const nobody = ['ECONNREFUSED', 'ENETUNREACH', 'EADDRNOTAVAIL', 'EHOSTUNREACH'] as const
const words = (text: string): string[] => text.split('\n').filter((line) => line !== '')
const amiss = (found: readonly string[]): string | null =>
  found.length === 0 ? null : found.slice(0, 5).join(', ')
const metadata = ['169.254.169.254', '100.100.100.200', '168.63.129.16']
const elsewhere = ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1']

const listeners = ({ port, port6 }: Canaries): Attempt[] => [
  stops(['tcp', '127.0.0.1', `${port}`], nobody, 'a listener on 127.0.0.1 of the host'),
  ...(port6 === null ? [] : [stops(['tcp', '::1', `${port6}`], nobody, 'a listener on ::1 of the host')]),
]
/** What stands outside for an address that nobody may be bothered at. */
const harmless = (canaries: Canaries): Attempt[] => [
  stops(['tcp', '127.0.0.1', `${canaries.port}`], [], 'a connection to a listener of the host'),
]
/**
 * Addresses that lead nowhere. Without a network it is asked for a way to them, which sends nothing, so that the same may be
 * asked where the host's network is there. Behind a relay every address has a way, to the relay: there it is dialled, and
 * a sandbox with a relay and without its own network does not come up.
 */
const unreachable = (scene: Scene, addresses: readonly string[], port: number): Trial =>
  isShut(scene)
    ? {
        expected: 'ENETUNREACH',
        attempts: addresses.map((address) => stops(['route', address], ['ENETUNREACH', 'EADDRNOTAVAIL'])),
        outside: [...addresses.map((address) => stops(['route', address], [])), ...harmless(scene.canaries)],
      }
    : {
        expected: 'ECONNREFUSED, at once',
        attempts: addresses.map((address) => stops(['tcp', address, `${port}`], nobody)),
        outside: harmless(scene.canaries),
      }
const isShut = ({ spec }: Scene): boolean => spec.network.mode === 'none'

export const reachProbes: readonly Probe[] = [
  {
    id: 'network.interfaces',
    number: 71,
    group: 'network',
    protects: 'A server has a loopback interface of its own, and no other.',
    control: 'net-namespace',
    trial: () => ({
      expected: 'lo',
      attempts: [
        finds(['text', '/proc/net/dev'], (text) =>
          amiss(
            [...text.matchAll(/^\s*([^\s:]+):/gm)].flatMap(([, name]) => (name === 'lo' ? [] : [`${name}`])),
          ),
        ),
      ],
    }),
  },
  {
    id: 'network.routes',
    number: 72,
    group: 'network',
    protects: 'No route leads out of the sandbox.',
    control: 'net-namespace',
    trial: () => ({
      expected: 'no route but over lo',
      attempts: [
        finds(['text', '/proc/net/route'], (text) =>
          amiss(
            words(text)
              .slice(1)
              .map((line) => line.split(/\s+/)[0] ?? '')
              .filter((name) => name !== 'lo'),
          ),
        ),
      ],
    }),
  },
  {
    id: 'network.host-loopback',
    number: 73,
    group: 'network',
    protects: 'What listens on the host’s loopback address alone, trusting whoever is there, is not reached.',
    control: 'net-namespace',
    trial: ({ canaries }) => ({ expected: 'ECONNREFUSED or ENETUNREACH', attempts: listeners(canaries) }),
  },
  {
    id: 'network.abstract-sockets',
    number: 74,
    group: 'network',
    protects: 'Sockets of the host that have a name and no file are not reached.',
    control: 'net-namespace',
    trial: ({ canaries }) => ({
      expected: 'ECONNREFUSED',
      attempts: [stops(['local', `@${canaries.abstract}`], ['ECONNREFUSED'])],
    }),
  },
  {
    id: 'network.pathname-sockets',
    number: 75,
    group: 'network',
    protects: 'Sockets of the host that have a file are not reached.',
    control: 'mount-plan',
    trial: ({ canaries }) => ({
      expected: 'ENOENT',
      attempts: [stops(['local', canaries.socket], ['ENOENT'])],
    }),
  },
  {
    id: 'network.addresses',
    number: 76,
    group: 'network',
    protects: 'No address that was not granted is reached.',
    control: 'net-namespace',
    trial: (scene) => unreachable(scene, elsewhere, 443),
  },
  {
    id: 'network.metadata',
    number: 80,
    group: 'network',
    protects: 'A cloud’s metadata, which gives out the machine’s own credentials, is not reached.',
    control: 'net-namespace',
    trial: (scene) => unreachable(scene, metadata, 80),
  },
  {
    id: 'network.other-sandboxes',
    number: 85,
    group: 'network',
    protects: 'What listens in another sandbox is not reached.',
    control: 'net-namespace',
    trial: ({ canaries, neighbour }) => ({
      expected: 'ECONNREFUSED',
      attempts: [
        stops(['tcp', '127.0.0.1', `${neighbour.port}`], ['ECONNREFUSED', 'ENETUNREACH']),
        ...(neighbour.abstract === null
          ? []
          : [stops(['local', `@${neighbour.abstract}`], ['ECONNREFUSED'])]),
      ],
      outside: harmless(canaries),
    }),
  },
  {
    id: 'ipc.signals',
    number: 91,
    group: 'ipc',
    protects: 'A server signals its own processes and nobody else’s.',
    control: 'pid-namespace',
    trial: ({ canaries }) => ({
      expected: 'ESRCH',
      attempts: [canaries.pid].map((pid) =>
        stops(['signal', `${pid}`], ['ESRCH'], `a process of the host, ${pid}`),
      ),
      outside: [stops(['kill-child'], [], 'a process of one’s own')],
    }),
  },
  {
    id: 'ipc.kill-pid-1',
    number: 92,
    group: 'ipc',
    protects: 'A server does not end the PID 1 that holds its sandbox.',
    control: 'first-process',
    trial: () => ({
      expected: 'PID 1 goes on',
      attempts: [stops(['kill-init'], ['EBUSY'], 'SIGKILL and SIGTERM to PID 1')],
      outside: [stops(['kill-child'], [], 'SIGKILL to a process of one’s own')],
    }),
  },
  {
    id: 'ipc.shared-files',
    number: 95,
    group: 'ipc',
    protects: 'Shared memory of the host’s programs in /dev/shm is not there.',
    control: 'mount-plan',
    trial: ({ canaries }) => ({
      expected: 'ENOENT',
      attempts: [stops(['read', canaries.shared], ['ENOENT'])],
    }),
  },
  {
    id: 'ipc.keyring',
    number: 96,
    group: 'ipc',
    protects: 'Keys in the keyring of a session, which pass through every namespace, are not found.',
    control: 'seccomp',
    trial: ({ canaries }) => ({
      expected: 'EPERM by the filter',
      attempts: [stops(['search-key', canaries.word], ['EPERM'])],
      outside: [
        stops(['search-planted-key', canaries.word], [], 'a key that was planted in the session keyring'),
      ],
    }),
  },
  {
    id: 'ipc.other-sandboxes',
    number: 97,
    group: 'ipc',
    protects: 'Processes of another sandbox are neither seen nor signalled.',
    control: 'pid-namespace',
    trial: ({ neighbour }) => ({
      expected: 'ESRCH',
      attempts: [
        stops(['signal', `${neighbour.pid}`], ['ESRCH'], `PID 1 of another sandbox, ${neighbour.pid}`),
      ],
      outside: [stops(['kill-child'], [], 'a process of one’s own')],
    }),
  },
  {
    id: 'terminal.open',
    number: 99,
    group: 'terminal',
    protects: 'There is no terminal, and a server’s session is not the daemon’s.',
    control: 'devices',
    trial: ({ driver }) => ({
      expected: 'ENOENT, and a session of its own',
      attempts: [
        // In a container it is the null device, under a name that an engine always makes.
        ...(driver === 'docker' ? [] : [stops(['stat', '/dev/tty'], ['ENOENT'])]),
        ...(driver === 'docker' ? [] : [stops(['stat', '/dev/ptmx'], ['ENOENT'])]),
        stops(['open-for-writing', '/dev/ptmx'], ['ENOENT']),
        finds(['session'], (text) => (Number(text) > 0 ? null : 'a session that began outside')),
      ],
    }),
  },
  {
    id: 'time.host-name',
    number: 110,
    group: 'time',
    protects: 'Which machine it is, by name or by id, is not told.',
    control: 'namespaces',
    trial: ({ hostName }) => ({
      expected: 'a name that is not the host’s, no machine id',
      attempts: [
        finds(['text', '/proc/sys/kernel/hostname'], (text) =>
          text.trim() === hostName ? 'the host’s name' : null,
        ),
        stops(['read', '/etc/machine-id'], ['ENOENT']),
      ],
    }),
  },
]
