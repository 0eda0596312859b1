// The demands on every process of a real server's sandbox, as seen from the host.
import { proxyPort } from '../../lib/own-variables.ts'
import { type Demand, judged, ownCount, type Sight } from './look.ts'
import { attempt, isRead, namespaceKinds, type SeenProcess, type Socket } from './processes.ts'
import { isSameFile, plannedPrograms } from './program.ts'

const listening = '0A'
const of = (process: SeenProcess, field: string): string => process.status[field] ?? 'absent'
const words = (text: string): string[] => text.trim().split(/\s+/)
const listed = (what: string, found: readonly string[]): string | null =>
  found.length === 0 ? null : `${what}: ${found.slice(0, 5).join(', ')}`

const isLike = (one: SeenProcess['runs'], other: SeenProcess['runs']): boolean =>
  isRead(one) ? isRead(other) && isSameFile(one, other) : !isRead(other)

const ranBy = ({ runs }: SeenProcess): string => (isRead(runs) ? runs.path : 'what nobody sees')

const capabilitySets = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'] as const

export const statusDemands: readonly Demand[] = [
  {
    id: 'process.ids',
    protects: 'Every process has one ordinary user of the host’s, and no other to become.',
    expected: ({ spec }) => `uid ${spec.hostUid}, gid ${spec.hostGid}, and no other id mapped`,
    amiss(process, { spec }) {
      const isOther = (field: string, id: number): boolean =>
        words(of(process, field)).some((each) => Number(each) !== id)
      if (isOther('Uid', spec.hostUid)) return `Uid ${of(process, 'Uid')}`
      if (isOther('Gid', spec.hostGid)) return `Gid ${of(process, 'Gid')}`
      return judged('id maps', process.idMaps, (maps) =>
        listed(
          'maps more than one id',
          maps.filter((map) => !/^\d+ \d+ 1$/.test(map)),
        ),
      )
    },
    tells: (process) =>
      `Uid ${of(process, 'Uid')}; maps ${isRead(process.idMaps) ? process.idMaps.join(', ') : 'hidden'}`,
  },
  {
    id: 'process.capabilities',
    protects: 'No process holds a capability, or can be given one.',
    expected: () => 'all five sets empty',
    amiss: (process) =>
      listed(
        'holds',
        capabilitySets.flatMap((set) =>
          /^0+$/.test(of(process, set)) ? [] : [`${set} ${of(process, set)}`],
        ),
      ),
    tells: (process) => capabilitySets.map((set) => `${set} ${of(process, set)}`).join(' '),
  },
  {
    id: 'process.no-new-privileges',
    protects: 'No program that is started gives a process more than it has.',
    expected: () => 'NoNewPrivs 1',
    amiss: (process) =>
      of(process, 'NoNewPrivs') === '1' ? null : `NoNewPrivs ${of(process, 'NoNewPrivs')}`,
    tells: (process) => `NoNewPrivs ${of(process, 'NoNewPrivs')}`,
  },
  {
    id: 'process.seccomp',
    protects: 'Every system call of every process goes through the filter.',
    expected: ({ ownFilters }) => `Seccomp 2, and more filters than the ${ownFilters} of this machine’s own`,
    amiss(process, { ownFilters }) {
      const mode = of(process, 'Seccomp')
      const filters = Number(process.status['Seccomp_filters'] ?? ownFilters + 1)
      return mode === '2' && filters > ownFilters ? null : `Seccomp ${mode}, ${filters} filters`
    },
    tells: (process) =>
      `Seccomp ${of(process, 'Seccomp')}, ${process.status['Seccomp_filters'] ?? 'an untold number of'} filters`,
  },
]

export const placeDemands: readonly Demand[] = [
  {
    id: 'process.tree',
    protects: 'The server is what was planned, and all that it starts stays below the sandbox’s PID 1.',
    expected: ({ spec }) => `${spec.program.path}, below PID 1`,
    amiss(process, sight) {
      const { processes, spec } = sight
      const index = processes.indexOf(process)
      const [init] = processes
      if (process.innerPid === 1) return index === 0 ? null : 'a second PID 1'
      if (!processes.some(({ pid }) => pid === process.parent)) return 'its parent is not in the sandbox'
      if (index > ownCount(sight)) return null
      if (process.parent !== init?.pid) return 'its parent is not PID 1'
      // What a process calls itself counts nothing: it may write that anew. PID 1 and the relay are one file, and hidden alike.
      if (index < ownCount(sight)) return isLike(process.runs, init.runs) ? null : `it runs ${ranBy(process)}`
      const planned = attempt(() => plannedPrograms(spec, process.pid))
      return judged('program', process.runs, (runs) =>
        judged('planned program', planned, (files) =>
          files.some((file) => isSameFile(file, runs)) ? null : `it runs ${runs.path}`,
        ),
      )
    },
    tells: (process) =>
      `below ${process.parent}: ${ranBy(process)}, which calls itself ${process.argv.slice(0, 4).join(' ')}`,
  },
  {
    id: 'process.namespaces',
    protects: 'No process shares a namespace with the host.',
    expected: () => `its own ${namespaceKinds.join(', ')}, the same for all`,
    amiss: (process, { ownNamespaces, processes }) =>
      judged('namespaces', process.namespaces, (all) => {
        const shared = namespaceKinds.filter((kind) => all[kind] === ownNamespaces[kind])
        const [first] = processes.flatMap(({ namespaces }) => (isRead(namespaces) ? [namespaces] : []))
        const others = namespaceKinds.filter((kind) => all[kind] !== first?.[kind])
        return listed('shares with the host', shared) ?? listed('has another', others)
      }),
    tells: ({ namespaces }) => (isRead(namespaces) ? Object.values(namespaces).join(' ') : ''),
  },
  {
    id: 'process.cgroup',
    protects: 'Every process is counted in the sandbox’s own control group, where limits are held there.',
    expected: ({ enforcedBy, driver }) =>
      driver === 'docker'
        ? 'a group of this container'
        : usesGroups(enforcedBy)
          ? 'a group of this instance'
          : 'none',
    absent: ({ driver, enforcedBy }) =>
      driver === 'docker' || usesGroups(enforcedBy)
        ? null
        : 'no limit of it is held by a control group on this machine; it applies where one is',
    amiss: (process, { spec, ownGroups, driver, processes }) =>
      judged('control group', process.groups, (text) => {
        const isContainer = driver === 'docker'
        if (text === ownGroups) return 'the groups of whoever launched it'
        const isOwn = isContainer
          ? containerGroup.test(text) && text === processes[0]?.groups
          : text.includes(`/${spec.instance}`)
        return isOwn ? null : `groups ${text.trim().replaceAll('\n', ' ')}`
      }),
    tells: ({ groups }) => (isRead(groups) ? groups.trim().replaceAll('\n', ' ') : ''),
  },
  {
    id: 'process.limits',
    protects: 'No process can open more files, write larger ones or leave a core than the profile says.',
    expected: ({ spec }) =>
      `open files ${spec.limits.openFiles}, file size ${spec.limits.fileBytes}, core 0, each hard`,
    amiss(process, sight) {
      const { spec, processes } = sight
      // Sallyport's own two were there before the limits, which are the server's.
      if (processes.indexOf(process) < ownCount(sight)) return null
      return judged('limits', process.limits, (text) =>
        listed(
          'has',
          (
            [
              ['Max open files', spec.limits.openFiles],
              ['Max file size', spec.limits.fileBytes],
              ['Max core file size', 0],
            ] as const
          ).flatMap(([name, most]) => {
            const [soft = 'absent', hard = 'absent'] = limitIn(text, name)
            return Number(soft) <= most && Number(hard) <= most ? [] : [`${name} ${soft} ${hard}`]
          }),
        ),
      )
    },
    tells: ({ limits }) =>
      isRead(limits)
        ? ['Max open files', 'Max file size', 'Max core file size', 'Max processes']
            .map((name) => `${name} ${limitIn(limits, name).join(' ')}`)
            .join('; ')
        : '',
  },
]

/** What an engine calls a container's group ends with the container's id. */
export const containerGroup = /[/-][0-9a-f]{64}(\.scope)?$/m

const usesGroups = (enforcedBy: Sight['enforcedBy']): boolean =>
  Object.values(enforcedBy).some((by) => by.startsWith('cgroup'))

const limitIn = (text: string, name: string): readonly string[] => {
  const line = text.split('\n').find((each) => each.startsWith(name))
  return line === undefined ? [] : words(line.slice(name.length)).slice(0, 2)
}

/** Local addresses as the kernel prints them, of what the relay listens on. */
const relayPorts: ReadonlySet<number> = new Set([53, proxyPort])

const portOf = ({ local }: Socket): number => Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16)

const isPlanned = (socket: Socket, { spec }: Sight): boolean =>
  spec.network.mode === 'allowlist' &&
  (relayPorts.has(portOf(socket)) || spec.network.grants.some(({ port }) => port === portOf(socket)))

export const givenDemands: readonly Demand[] = [
  {
    id: 'process.listening',
    protects: 'Nothing in the sandbox listens but the relay of a profile that has a network.',
    expected: ({ spec }) =>
      spec.network.mode === 'none' ? 'nothing' : 'the relay’s name server, proxy and targets',
    amiss: (process, sight) =>
      judged('sockets', process.sockets, (sockets) =>
        listed(
          'listens at',
          sockets
            .filter(({ protocol, state }) => protocol.startsWith('udp') || state === listening)
            .filter((socket) => !isPlanned(socket, sight))
            .map((socket) => `${socket.protocol} ${portOf(socket)}`),
        ),
      ),
    tells: ({ sockets }) =>
      isRead(sockets)
        ? [...new Set(sockets.map((socket) => `${socket.protocol} ${portOf(socket)}`))]
            .slice(0, 12)
            .join(', ') || 'no socket of a network'
        : '',
  },
  {
    id: 'process.environment',
    protects: 'A server has the variables that were planned, and none of the daemon’s.',
    expected: ({ spec, secretNames }) =>
      [...Object.keys(spec.environment), ...secretNames].toSorted().join(' '),
    amiss(process, { spec, secretNames, word, processes }) {
      return judged('environment', process.environment, (variables) => {
        const leaked = [...variables].flatMap(([name, value]) => (value.includes(word) ? [name] : []))
        if (leaked.length > 0) return listed('has of the daemon’s', leaked)
        if (process.innerPid === 1) return null
        const isServer = processes.indexOf(process) === ownCount({ spec })
        const planned = new Set([...Object.keys(spec.environment), ...secretNames])
        // A server may give its own children what it likes; it has nothing else of ours to give.
        return isServer
          ? listed(
              'has beyond the plan',
              [...variables.keys()].filter((name) => !planned.has(name)),
            )
          : null
      })
    },
    tells: ({ environment }) => (isRead(environment) ? [...environment.keys()].toSorted().join(' ') : ''),
  },
]
