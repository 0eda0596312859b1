// What a server could do under one profile that it could not under another, in words.
import { formatPath } from '../schema/problem.ts'
import { own } from '../lib/own.ts'
import type { Profile } from '../schema/types.gen.ts'
import { keyRules, targetOf, type Wider } from './narrowing.ts'
import type { SyscallJudge } from './profile-explain.ts'
import { foldLayers, mergeLayers, checkLayers } from './profile.ts'
import { readLayers, type ProfileSearch } from './profile-layers.ts'
import { refuse } from './refusal.ts'

export interface Change {
  /** The key that makes the difference */
  readonly key: string
  /** What a server could do, to be read after "a server could" */
  readonly could: string
  /** File and line that decide it, or `default` */
  readonly decided_at: string
}

export interface ProfileDiff {
  readonly from: string
  readonly to: string
  readonly newly: readonly Change[]
  readonly no_longer: readonly Change[]
}

/** Compares two profiles, by name or path, as they stand once everything is folded in. Throws as `loadProfile` does. */
export async function diffProfiles(
  from: string,
  to: string,
  search: ProfileSearch,
  judgeSyscall: SyscallJudge,
): Promise<ProfileDiff> {
  const [before, after] = [await loaded(from, search, judgeSyscall), await loaded(to, search, judgeSyscall)]
  return {
    from: before.name,
    to: after.name,
    newly: changes(after, before),
    no_longer: changes(before, after),
  }
}

interface Loaded {
  readonly name: string
  /** The lists of system calls as they are written: `profile` has them without what says nothing */
  readonly written: Profile['syscalls']
  readonly profile: Profile
  readonly decidedAt: Readonly<Record<string, string>>
}

async function loaded(nameOrPath: string, search: ProfileSearch, judge: SyscallJudge): Promise<Loaded> {
  const layers = await readLayers(nameOrPath, search)
  refuse(checkLayers(layers))
  const { name, decidedAt } = foldLayers(layers)
  const merged = mergeLayers(layers)
  return { name, decidedAt, written: merged.syscalls, profile: { ...effective(merged, judge), name } }
}

/** Hosts without a network are no hosts; a call that the base allows is no grant, and one that nothing allows no denial. */
function effective(profile: Profile, judge: SyscallJudge): Profile {
  const { network, syscalls } = profile
  const { base, allow } = syscalls
  const gets = (name: string, allowed: readonly string[]): string =>
    judge(name, { base, allow: allowed, deny: [] }).gets
  return {
    ...profile,
    network: network.mode === 'none' ? { ...network, allow: [] } : network,
    syscalls: {
      base,
      allow: allow.filter((name) => gets(name, []) !== 'allowed'),
      deny: syscalls.deny.filter((name) => !gets(name, allow).startsWith('refused')),
    },
  }
}

function changes(wider: Loaded, narrower: Loaded): readonly Change[] {
  return keyRules.flatMap((rule) =>
    rule.wider(wider.profile, narrower.profile).map((found): Change => {
      const key = rule.path.join('.')
      const place = formatPath([...rule.path, ...(placeIn(rule.path, found, wider) ?? found.at)])
      return {
        key: place,
        could: inWords(key, found, wider.profile, narrower.profile),
        decided_at: own(wider.decidedAt, place) ?? own(wider.decidedAt, key) ?? 'default',
      }
    }),
  )
}

/** Where a name of `syscalls.allow` stands in its file, or null for what is no such name. */
function placeIn(path: readonly string[], { got }: Wider, { written }: Loaded): readonly [number] | null {
  const index = path.join('.') === 'syscalls.allow' ? written.allow.indexOf(got) : -1
  return index < 0 ? null : [index]
}

const injections: Readonly<Record<string, string>> = {
  egress: 'use credentials that the proxy puts into its requests',
  meta: 'be handed credentials in the requests that need them',
  file: 'be handed credentials in a file, for a call',
  env: 'be handed credentials in its environment, for a call',
}

function inWords(key: string, { got }: Wider, wider: Profile, narrower: Profile): string {
  switch (key) {
    case 'filesystem.read':
      return `read ${got}`
    case 'filesystem.write':
      return `write to ${got}, and read what is there`
    case 'filesystem.mounts':
      return got === 'write'
        ? 'have host folders to write to, where its entry mounts them'
        : 'have host folders to read, where its entry mounts them'
    case 'network.mode':
      return 'have a network in which the listed hosts exist'
    case 'network.allow':
      return `connect to ${got}${isPrivate(wider, got) ? ', on private addresses too' : ''}, where its entry asks for it`
    case 'credentials':
      return own(injections, got) ?? `use credentials by ${got}`
    case 'exec':
      return 'start other programs'
    case 'environment.pass':
      return `see the daemon’s variable ${got}`
    case 'environment.set':
      return `have ${got}`
    case 'syscalls.allow':
      return `make the system call ${got}`
    case 'syscalls.deny':
      return `make a system call that ${narrower.name} denies: ${got.replace('a list without ', '')}`
    default:
      return ofAmounts(key, got, narrower)
  }
}

const isPrivate = ({ network }: Profile, target: string): boolean =>
  network.allow.some((entry) => targetOf(entry) === target && entry.private)

/** Limits, and how firmly they hold. */
function ofAmounts(key: string, got: string, { filesystem, limits }: Profile): string {
  switch (key) {
    case 'filesystem.tmp_bytes':
      return `fill ${got} bytes of each scratch folder, instead of ${filesystem.tmp_bytes}`
    case 'limits.memory_bytes':
      return `use ${got} bytes of memory, instead of ${limits.memory_bytes}`
    case 'limits.pids':
      return `have ${got} processes and threads, instead of ${limits.pids}`
    case 'limits.cpu':
      return `use ${got} cores, instead of ${limits.cpu}`
    case 'limits.open_files':
      return `have ${got} files open in each process, instead of ${limits.open_files}`
    case 'limits.file_bytes':
      return `write files of ${got} bytes, instead of ${limits.file_bytes}`
    default:
      return key.startsWith('limits.enforcement.')
        ? `run where its limit of ${key.replace('limits.enforcement.', '')} is held by a watchdog, or by nothing`
        : `have ${key}: ${got}`
  }
}
