// Whether a profile grants no more than the one it extends: one row for each key, and what "no more" means for it.
import type { NetworkGrant } from '../schema/settings.ts'
import type { Profile } from '../schema/types.gen.ts'

/** A value of a child that its parent does not cover. */
export interface Wider {
  /** Steps below the key: a place in a list, a name in a mapping */
  readonly at: readonly (string | number)[]
  readonly got: string
  readonly expected: string
}

export interface KeyRule {
  /** Steps from the top of a profile to the key */
  readonly path: readonly string[]
  /** What a narrower value is, for docs and people */
  readonly narrower: string
  /** Everything of the child's that the parent does not cover; empty means narrower or equal */
  readonly wider: (child: Profile, parent: Profile) => readonly Wider[]
}

type Enforcement = Profile['limits']['enforcement']['memory']

/** Every key that grants something. A key that a child states takes the place of its parent's. */
export const keyRules: readonly KeyRule[] = [
  {
    path: ['filesystem', 'read'],
    narrower: 'each path is one that the parent reads or writes, or lies under one',
    wider: ({ filesystem: { read } }, { filesystem: parent }) =>
      uncoveredPaths(read, [...parent.read, ...parent.write]),
  },
  {
    path: ['filesystem', 'write'],
    narrower: 'each path is one that the parent writes, or lies under one',
    wider: (child, parent) => uncoveredPaths(child.filesystem.write, parent.filesystem.write),
  },
  {
    path: ['filesystem', 'mounts'],
    narrower: 'none, then read, then write',
    wider: (child, parent) =>
      ranked(['none', 'read', 'write'], child.filesystem.mounts, parent.filesystem.mounts),
  },
  {
    path: ['filesystem', 'tmp_bytes'],
    narrower: 'at most the parent’s',
    wider: (child, parent) => atMost(child.filesystem.tmp_bytes, parent.filesystem.tmp_bytes),
  },
  {
    path: ['filesystem', 'home'],
    narrower: 'private is all there is',
    wider: (child, parent) => ranked(['private'], child.filesystem.home, parent.filesystem.home),
  },
  {
    path: ['network', 'mode'],
    narrower: 'none, then allowlist',
    wider: (child, parent) => ranked(['none', 'allowlist'], child.network.mode, parent.network.mode),
  },
  {
    path: ['network', 'allow'],
    narrower:
      'each host and port is covered by an entry of the parent’s with the same `address`, if any; `private` only where that entry says so',
    wider: (child, parent) =>
      child.network.allow.flatMap((entry, index) =>
        parent.network.allow.some((above) => coversGrant(above, entry))
          ? []
          : [
              {
                at: [index],
                got: targetOf(entry),
                expected: listed(parent.network.allow.map(targetOf)),
              },
            ],
      ),
  },
  {
    path: ['credentials'],
    narrower: 'a subset',
    wider: (child, parent) => subset(child.credentials, parent.credentials),
  },
  {
    path: ['exec'],
    narrower: 'none, then any',
    wider: (child, parent) => ranked(['none', 'any'], child.exec, parent.exec),
  },
  {
    path: ['environment', 'pass'],
    narrower: 'a subset, with no new overrides',
    wider: ({ environment: { pass } }, { environment: parent }) =>
      pass.flatMap((entry, index) =>
        parent.pass.some(
          (above) =>
            passName(above) === passName(entry) && (typeof entry === 'string' || typeof above === 'object'),
        )
          ? []
          : [{ at: [index], got: passName(entry), expected: listed(parent.pass.map(passName)) }],
      ),
  },
  {
    path: ['environment', 'set'],
    narrower: 'a subset, with the same values',
    wider: ({ environment: { set } }, { environment: parent }) =>
      Object.entries(set).flatMap(([name, value]) =>
        Object.hasOwn(parent.set, name) && JSON.stringify(parent.set[name]) === JSON.stringify(value)
          ? []
          : [{ at: [name], got: `a value of its own for ${name}`, expected: 'the parent’s value, or none' }],
      ),
  },
  {
    path: ['syscalls', 'base'],
    narrower: 'strict is all there is',
    wider: (child, parent) => ranked(['strict'], child.syscalls.base, parent.syscalls.base),
  },
  {
    path: ['syscalls', 'allow'],
    narrower: 'a subset',
    wider: (child, parent) => subset(child.syscalls.allow, parent.syscalls.allow),
  },
  {
    path: ['syscalls', 'deny'],
    narrower: 'everything that the parent denies, and perhaps more',
    wider: (child, parent) =>
      parent.syscalls.deny
        .filter((name) => !child.syscalls.deny.includes(name))
        .map((name) => ({
          at: [],
          got: `a list without ${name}`,
          expected: `${name} too, which the parent denies`,
        })),
  },
  limit('memory_bytes'),
  limit('pids'),
  limit('cpu'),
  limit('open_files'),
  limit('file_bytes'),
  enforcement('memory'),
  enforcement('cpu'),
  enforcement('pids'),
  enforcement('files'),
]

/** True where a path is another or lies under it; both are absolute and normal in form. */
export function liesWithin(path: string, folder: string): boolean {
  return path === folder || folder === '/' || path.startsWith(`${folder}/`)
}

type Target = Pick<NetworkGrant, 'host' | 'port'>

/** True where an entry grants all that another does: its host and port, the address that is said, and private ones. */
export function coversGrant(
  above: Omit<NetworkGrant, 'reason'>,
  entry: Omit<NetworkGrant, 'reason'>,
): boolean {
  return coversHost(above, entry) && above.address === entry.address && (above.private || !entry.private)
}

/** True where a host and port include another, which may be a pattern itself. */
export function coversHost(above: Target, entry: Target): boolean {
  if (above.port !== entry.port) return false
  if (above.host === entry.host) return true
  return (
    above.host.startsWith('*.') &&
    entry.host.endsWith(above.host.slice(1)) &&
    entry.host.length > above.host.length - 1
  )
}

function limit(name: 'memory_bytes' | 'pids' | 'cpu' | 'open_files' | 'file_bytes'): KeyRule {
  return {
    path: ['limits', name],
    narrower: 'at most the parent’s',
    wider: (child, parent) => atMost(child.limits[name], parent.limits[name]),
  }
}

function enforcement(name: keyof Profile['limits']['enforcement']): KeyRule {
  const order: readonly Enforcement[] = ['required', 'best-effort']
  return {
    path: ['limits', 'enforcement', name],
    narrower: 'required, then best-effort',
    wider: (child, parent) => ranked(order, child.limits.enforcement[name], parent.limits.enforcement[name]),
  }
}

function uncoveredPaths(
  grants: readonly { path: string }[],
  above: readonly { path: string }[],
): readonly Wider[] {
  return grants.flatMap(({ path }, index) =>
    above.some((grant) => liesWithin(path, grant.path))
      ? []
      : [
          {
            at: [index],
            got: path,
            expected: listed(
              above.map((grant) => grant.path),
              'a path within',
            ),
          },
        ],
  )
}

function subset(child: readonly string[], parent: readonly string[]): readonly Wider[] {
  return child.flatMap((value, index) =>
    parent.includes(value) ? [] : [{ at: [index], got: value, expected: listed(parent) }],
  )
}

function atMost(child: number, parent: number): readonly Wider[] {
  return child <= parent ? [] : [{ at: [], got: String(child), expected: `at most ${parent}` }]
}

/** The order runs from the least to the most. */
function ranked<T extends string>(order: readonly T[], child: T, parent: T): readonly Wider[] {
  if (order.indexOf(child) <= order.indexOf(parent)) return []
  return [{ at: [], got: child, expected: listed(order.slice(0, order.indexOf(parent) + 1)) }]
}

const passName = (entry: Profile['environment']['pass'][number]): string =>
  typeof entry === 'string' ? entry : entry.name
/** The target of an entry as people write it, with the address that it was given. */
export function targetOf({ host, port, address }: Pick<NetworkGrant, 'host' | 'port' | 'address'>): string {
  return `${host}:${port}${address === null ? '' : ` at ${address}`}`
}
const listed = (values: readonly string[], prefix = 'one of'): string =>
  values.length === 0 ? 'nothing here' : `${prefix} ${values.join(', ')}`
