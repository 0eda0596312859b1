// The processes of one sandbox as the host's /proc shows them: what a server cannot dress up, since it is not asked.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { errnoOf } from '../../lib/missing.ts'
import { type Running, runningIn } from './program.ts'

/** Of a file that could not be read: the name of the errno. */
export interface Unread {
  readonly unread: string
}
export type Read<T> = T | Unread

export const namespaceKinds = ['mnt', 'pid', 'net', 'ipc', 'uts', 'user', 'cgroup'] as const

export interface Descriptor {
  readonly fd: number
  /** `socket:[1]`, `pipe:[2]`, `anon_inode:[eventpoll]`, or a path */
  readonly leadsTo: string
  /** Mount that a path lies in, as mountinfo numbers it */
  readonly mount: number
}

/** One process. Everything but `status` may be hidden from an ordinary user, by a process that is not dumpable. */
export interface SeenProcess {
  readonly pid: number
  readonly parent: number
  /** Its pid in the sandbox, which nothing that runs there chooses */
  readonly innerPid: number
  readonly name: string
  readonly status: Readonly<Record<string, string>>
  /** As it calls itself: it may write anything there */
  readonly argv: readonly string[]
  readonly runs: Read<Running>
  readonly namespaces: Read<Readonly<Record<string, string>>>
  readonly idMaps: Read<readonly string[]>
  readonly groups: Read<string>
  readonly limits: Read<string>
  readonly mounts: Read<string>
  readonly descriptors: Read<readonly Descriptor[]>
  /** Name -> value */
  readonly environment: Read<ReadonlyMap<string, string>>
  /** Lines of TCP and UDP sockets of its network: protocol, local address in the kernel's hexadecimal, state */
  readonly sockets: Read<readonly Socket[]>
}

export interface Socket {
  readonly protocol: string
  readonly local: string
  readonly state: string
}

/**
 * Everything from PID 1 of a sandbox down, PID 1 first. What ends while it is looked at is left out. Throws where /proc doesn't
 * say who is there: that nothing was seen of a process is no sign that there is none.
 */
export const processesOf = (initPid: number): readonly SeenProcess[] => {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const status = fieldsOf(unlessGone(() => readFileSync(`/proc/${name}/status`, 'utf8')))
    if (status !== null && !/^[ZX]/.test(status['State'] ?? 'X'))
      parents.set(Number(name), Number(status['PPid']))
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && pid > 1 && (pid === initPid || isBelow(parents.get(pid)))
  return [...parents.keys()]
    .filter((pid) => isBelow(pid))
    .flatMap((pid) => seen(pid) ?? [])
    .toSorted((one, other) => one.innerPid - other.innerPid)
}

const seen = (pid: number): SeenProcess | null => {
  const at = (file: string): string => readFileSync(`/proc/${pid}/${file}`, 'utf8')
  const status = fieldsOf(unlessGone(() => at('status')))
  if (status === null) return null
  return {
    pid,
    parent: Number(status['PPid']),
    innerPid: Number(status['NSpid']?.split(/\s+/).at(-1)),
    name: status['Name'] ?? '',
    status,
    argv: orNone(attempt(() => at('cmdline').split('\0').slice(0, -1))),
    runs: attempt(() => runningIn(pid)),
    namespaces: attempt(() =>
      Object.fromEntries(namespaceKinds.map((kind) => [kind, readlinkSync(`/proc/${pid}/ns/${kind}`)])),
    ),
    idMaps: attempt(() => [at('uid_map'), at('gid_map')].map((map) => map.trim().replaceAll(/\s+/g, ' '))),
    groups: attempt(() => at('cgroup')),
    limits: attempt(() => at('limits')),
    mounts: attempt(() => at('mountinfo')),
    descriptors: attempt(() =>
      readdirSync(`/proc/${pid}/fd`).flatMap((fd): Descriptor[] => {
        const leadsTo = unlessGone(() => readlinkSync(`/proc/${pid}/fd/${fd}`))
        const info = unlessGone(() => at(`fdinfo/${fd}`))
        if (leadsTo === null || info === null) return [] // it was closed meanwhile
        return [{ fd: Number(fd), leadsTo, mount: Number(/^mnt_id:\s+(\d+)/m.exec(info)?.[1]) }]
      }),
    ),
    environment: attempt(
      () =>
        new Map(
          at('environ')
            .split('\0')
            .filter((line) => line !== '')
            .map((line): [string, string] => {
              const [name = '', ...value] = line.split('=')
              return [name, value.join('=')]
            }),
        ),
    ),
    sockets: attempt(() =>
      ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((file) => socketsIn(file, at(`net/${file}`))),
    ),
  }
}

export const isRead = <T>(value: Read<T>): value is T =>
  typeof value !== 'object' || value === null || !('unread' in value)

/** Reads, or says the errno with which that was refused. */
export const attempt = <T>(read: () => T): Read<T> => {
  try {
    return read()
  } catch (error) {
    return { unread: errnoOf(error) ?? String(error) }
  }
}

/** Reads what a process has, or returns null where it has that no more, or is gone. Throws whatever else keeps it from being read. */
const unlessGone = <T>(read: () => T): T | null => {
  try {
    return read()
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(errnoOf(error) ?? '')) return null
    throw error
  }
}

const orNone = (value: Read<readonly string[]>): readonly string[] => (isRead(value) ? value : [])

const fieldsOf = (text: string | null): Record<string, string> | null =>
  text === null
    ? null
    : Object.fromEntries(
        text.split('\n').map((line) => [line.split(':')[0] ?? '', line.slice(line.indexOf(':') + 1).trim()]),
      )

const socketsIn = (protocol: string, table: string): Socket[] =>
  table
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [, local = '', , state = ''] = line.trim().split(/\s+/)
      return { protocol, local, state }
    })
