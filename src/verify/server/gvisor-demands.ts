// The demands where gVisor stands between: what the host has of a server there is gVisor's own processes, not the server's.
import { givenDemands, placeDemands, statusDemands } from './demands.ts'
import { type Demand, judged } from './look.ts'
import type { SeenProcess } from './processes.ts'

/** Namespaces that gVisor takes of the host's for its own processes. */
const kinds = ['mnt', 'net', 'ipc', 'uts', 'user'] as const
const sets = ['CapPrm', 'CapEff', 'CapAmb'] as const

const asEverywhere = ['process.no-new-privileges', 'process.seccomp', 'process.cgroup', 'process.environment']

const idsOf = ({ status }: SeenProcess): string => `Uid ${status['Uid']}, Gid ${status['Gid']}`

/**
 * What holds of gVisor's processes from outside. The server's user, limits, mounts, descriptors and its place in the tree are
 * inside of gVisor alone, where the battery tries them.
 */
export const gvisorDemands: readonly Demand[] = [
  {
    id: 'process.ids',
    protects: 'gVisor’s own processes are not the host’s root.',
    expected: () => 'no uid and no gid that is 0',
    amiss: (process) => (/\b0\b/.test(idsOf(process)) ? idsOf(process) : null),
    tells: idsOf,
  },
  {
    id: 'process.capabilities',
    protects: 'gVisor’s own processes have no capability over the host.',
    expected: () => 'none, but in a user namespace of their own',
    amiss: (process, { ownNamespaces }) => {
      const held = sets.filter((set) => !/^0+$/.test(process.status[set] ?? 'absent'))
      if (held.length === 0) return null
      return judged('user namespace', process.namespaces, ({ user }) =>
        user === ownNamespaces['user'] ? `holds ${held.join(', ')} in the host’s user namespace` : null,
      )
    },
    tells: ({ status }) => sets.map((set) => `${set} ${status[set] ?? 'absent'}`).join(' '),
  },
  {
    id: 'process.namespaces',
    protects: 'gVisor’s own processes have neither files nor network nor users of the host.',
    expected: () => `its own ${kinds.join(', ')}`,
    amiss: (process, { ownNamespaces }) =>
      judged('namespaces', process.namespaces, (all) => {
        const shared = kinds.filter((kind) => all[kind] === ownNamespaces[kind])
        return shared.length === 0 ? null : `shares with the host: ${shared.join(', ')}`
      }),
    tells: (process) => JSON.stringify(process.namespaces),
  },
  ...[...statusDemands, ...placeDemands, ...givenDemands].filter(({ id }) => asEverywhere.includes(id)),
]
