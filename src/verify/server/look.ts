// What is demanded of a real server's processes, one demand at a time: each looks at all of them and names who breaks it.
import type { EnforcedLimits } from '../../sandbox/driver.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Inspection } from '../result.ts'
import { isRead, type Read, type SeenProcess } from './processes.ts'

/** A running sandbox, as it was planned and as it is. */
export interface Sight {
  readonly spec: SandboxSpec
  /** What made it */
  readonly driver: ServerSettings['driver']
  readonly enforcedBy: EnforcedLimits
  /** PID 1 first, then the relay of a sandbox with a network, then the server and what it started */
  readonly processes: readonly SeenProcess[]
  /** Namespaces of the process that looks, by kind */
  readonly ownNamespaces: Readonly<Record<string, string>>
  /** Control group of the process that looks, as /proc tells it */
  readonly ownGroups: string
  /** Filters of system calls that the process that looks is itself under, which a sandbox adds to */
  readonly ownFilters: number
  /** Names of the variables that come with the server's credentials */
  readonly secretNames: readonly string[]
  /** A word that is in variables of the daemon's and must be in none of the sandbox's */
  readonly word: string
}

export interface Demand extends Pick<Inspection, 'id' | 'protects'> {
  expected(sight: Sight): string
  /** Why there is nothing to look at by the plan of this sandbox, else null; there is where this is left out */
  absent?(sight: Sight): string | null
  /** What is amiss with one process, or null; `unreadable` where it could not be looked at */
  amiss(process: SeenProcess, sight: Sight): string | null | Unreadable
  /** What to say of a process beside its name */
  tells(process: SeenProcess, sight: Sight): string
}

/** Nothing is known: the kernel did not let the file be read. */
export const unreadable = (what: string, { unread }: { readonly unread: string }): Unreadable => ({
  what,
  unread,
})
interface Unreadable {
  readonly what: string
  readonly unread: string
}

/** Reads a part of a process, and says what is amiss with it. */
export const judged = <T>(
  what: string,
  part: Read<T>,
  amiss: (value: T) => string | null | Unreadable,
): string | null | Unreadable => (isRead(part) ? amiss(part) : unreadable(what, part))

/**
 * Returns what came of one demand. Sallyport's own two processes hide themselves from everybody but root, which is no
 * failure; a process of the server that cannot be looked at is an error.
 */
export const look = (demand: Demand, sight: Sight): Inspection => {
  const { id, protects } = demand
  const absent = demand.absent?.(sight) ?? null
  if (absent !== null)
    return {
      id,
      protects,
      expected: demand.expected(sight),
      observed: absent,
      verdict: 'not-applicable',
      evidence: [],
    }
  const own = ownCount(sight)
  const found = sight.processes.map((process, index) => ({
    process,
    isOwn: index < own,
    amiss: demand.amiss(process, sight),
  }))
  const bad = found.flatMap(({ process, amiss }) =>
    typeof amiss === 'string' ? [`${nameOf(process)}: ${amiss}`] : [],
  )
  const blind = found.flatMap(({ process, amiss, isOwn }) =>
    isOwn || typeof amiss === 'string' || amiss === null
      ? []
      : [`${nameOf(process)}: its ${amiss.what} cannot be read (${amiss.unread})`],
  )
  const isSeen = found.length > own
  return {
    id,
    protects,
    expected: demand.expected(sight),
    observed:
      bad[0] ?? blind[0] ?? (isSeen ? `so it is, of ${found.length} processes` : 'no process of the server'),
    verdict: bad.length > 0 ? 'fail' : blind.length > 0 || !isSeen ? 'error' : 'pass',
    evidence: found.map(({ process, amiss }) =>
      amiss === null || typeof amiss === 'string'
        ? `${nameOf(process)}: ${demand.tells(process, sight)}`
        : `${nameOf(process)}: its ${amiss.what} is hidden (${amiss.unread})`,
    ),
  }
}

/** PID 1, and the relay where there is a network: they are there before the server, and so are first. */
export const ownCount = ({ spec }: Pick<Sight, 'spec'>): number => (spec.network.mode === 'none' ? 1 : 2)

const nameOf = ({ pid, innerPid, name }: SeenProcess): string => `pid ${pid} (${innerPid} inside) ${name}`
