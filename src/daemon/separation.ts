// Whether hosts are kept from the daemon and the sandboxes by the kernel: only where nobody shares a uid.
import { SallyportError } from '../errors.ts'
import { textIfThere } from '../lib/missing.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'

/** Who may use host.sock, and what that means for separation. */
export interface Admission {
  /** Group of host.sock, or null for the daemon's own user alone */
  readonly hostGid: number | null
  readonly separation: 'full' | 'none'
  /** Throws ERR_SEPARATION where a server's sandbox would run under a uid that host.sock admits */
  readonly expectApart: (server: ServerSettings) => void
  readonly admitsHost: (uid: number) => boolean
  readonly admitsOperator: (uid: number) => boolean
}

/** The user database, as text; tests give their own. */
export interface UserDatabase {
  readonly passwd: string
  readonly group: string
}

/**
 * Works out who is who. Throws ERR_SEPARATION where `require_separation` can't hold or a sandbox would run under a uid
 * that host.sock admits, and ERR_CONFIG_INVALID where `host_group` does not exist. Of settings that change, a host is admitted
 * by the servers that there are when it comes.
 */
export function admission(settings: Settings, daemonUid: number, database = readDatabase()): Admission {
  const { group, hosts } = hostsOf(settings, daemonUid, database)
  const expectApart = ({ name, runAs }: ServerSettings): void => {
    if (runAs !== null && runAs !== daemonUid && hosts.has(runAs)) throw sharedWithHost(name, runAs)
  }
  for (const server of settings.servers.values()) expectApart(server)
  const isShared = hosts.has(daemonUid) // and no sandbox's own uid is a host's
  if (isShared && settings.requireSeparation) throw notSeparate(daemonUid, settings.hostGroup)
  const isSandboxes = (uid: number): boolean =>
    [...settings.servers.values()].some(({ runAs }) => runAs === uid)
  return {
    hostGid: group?.gid ?? null,
    separation: isShared ? 'none' : 'full',
    expectApart,
    // With a group the kernel has judged by the socket's mode: membership may come from where we can't read it.
    admitsHost: (uid) => uid === 0 || uid === daemonUid || (group !== null && !isSandboxes(uid)),
    admitsOperator: (uid) => uid === 0 || uid === daemonUid,
  }
}

/** The same of one server that is added, by who is a host now: nobody else's place among the hosts is its own affair. */
export function expectServerApart(
  settings: Settings,
  daemonUid: number,
  { name, runAs }: ServerSettings,
  database = readDatabase,
): void {
  if (runAs === null || runAs === daemonUid) return
  if (hostsOf(settings, daemonUid, database()).hosts.has(runAs)) throw sharedWithHost(name, runAs)
}

function hostsOf({ hostGroup }: Settings, daemonUid: number, database: UserDatabase) {
  const group = hostGroup === null ? null : findGroup(hostGroup, database)
  return { group, hosts: group === null ? new Set([daemonUid]) : group.members }
}

/** A small image may have neither file: then nobody has a name. */
function readDatabase(): UserDatabase {
  return { passwd: textIfThere('/etc/passwd'), group: textIfThere('/etc/group') }
}

function findGroup(
  name: string,
  { passwd, group }: UserDatabase,
): { gid: number; members: ReadonlySet<number> } {
  const entry = records(group).find(([groupName]) => groupName === name)
  const gid = Number(entry?.[2])
  if (entry === undefined || !Number.isInteger(gid))
    throw new SallyportError(
      'ERR_CONFIG_INVALID',
      `host_group: got ${JSON.stringify(name)}, expected a group of /etc/group; make it with: groupadd --system ${name}`,
      { group: name },
    )
  const named = new Set(entry[3]?.split(',') ?? [])
  const members = records(passwd)
    .filter(([user, , , primary]) => named.has(user ?? '') || primary === String(gid))
    .map(([, , uid]) => Number(uid))
  return { gid, members: new Set(members) }
}

function records(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'))
}

const sharedWithHost = (server: string, uid: number): SallyportError =>
  new SallyportError(
    'ERR_SEPARATION',
    `servers.${server}.run_as: got uid ${uid}, which host.sock admits; expected one that no host has`,
    { server, uid },
  )

function notSeparate(daemonUid: number, hostGroup: string | null): SallyportError {
  const why = hostGroup === null ? 'host_group is not set, so hosts are' : `a member of ${hostGroup} is`
  const asWhom = `run the daemon as ${daemonUid === 0 ? '' : 'root, or as '}a user who is not listed in the hosts' group, and name that`
  const mend = daemonUid === 0 && hostGroup === null ? 'name a group of the hosts, who are not root,' : asWhom
  return new SallyportError(
    'ERR_SEPARATION',
    `require_separation: ${why} uid ${daemonUid} like the daemon or a sandbox; ${mend} in host_group`,
    { uid: daemonUid },
  )
}
