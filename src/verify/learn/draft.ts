// The profile that a draft says: every value that was learned, on top of the shipped profile that is closest to it.
import { keyRules } from '../../config/narrowing.ts'
import { mergeLayers } from '../../config/profile.ts'
import { findProfiles, readLayers } from '../../config/profile-layers.ts'
import { SallyportError } from '../../errors.ts'
import type { Profile } from '../../schema/types.gen.ts'
import type { Needs } from './grants.ts'
import type { Withheld } from './view.ts'

/** What a draft is made of. */
export interface DraftParts {
  readonly name: string
  /** The command line that was run, for people */
  readonly command: string
  readonly needs: Needs
  /** Variables of the daemon that are passed on, and variables with their values: what a person offered */
  readonly pass: readonly string[]
  readonly set: Readonly<Record<string, string>>
  readonly hasNetwork: boolean
  readonly withheld: readonly Withheld[]
  /** System calls that were refused, by name */
  readonly refusedCalls: readonly string[]
  readonly callCount: number
}

/** A draft, with nothing left to decide. */
export interface Draft {
  readonly profile: Profile
  readonly parent: string
  /** The keys that it states, since the parent says otherwise, as steps from the top */
  readonly stated: readonly (readonly string[])[]
  /** Those of them that grant more than the parent */
  readonly wider: readonly (readonly string[])[]
}

const mebibyte = 1_048_576
const assertionLimit = 12

/** Returns the least profile for what was needed. Limits are what was taken, with room to breathe. */
export const draftOf = async (parts: DraftParts): Promise<Draft> => {
  const parents = await shipped()
  const offline = parents.get('offline')
  if (offline === undefined) throw new SallyportError('ERR_INTERNAL', 'the profile offline does not ship')
  const profile = wanted(offline, parts)
  const choices = [...parents].map(([parent, above]) => {
    const wider = keyRules.filter((rule) => rule.wider(profile, above).length > 0)
    const stated = keyRules.filter((rule) => wider.includes(rule) || rule.wider(above, profile).length > 0)
    return { profile, parent, stated: stated.map(({ path }) => path), wider: wider.map(({ path }) => path) }
  })
  // Of equals the one that ships as the default, since it has no surprise in it.
  const rank = ({ parent, stated }: Draft): number => stated.length * 2 + (parent === 'offline' ? 0 : 1)
  const [closest] = choices.toSorted((one, other) => rank(one) - rank(other))
  if (closest === undefined) throw new SallyportError('ERR_INTERNAL', 'no profile ships')
  return closest
}

const shipped = async (): Promise<ReadonlyMap<string, Profile>> => {
  const search = { folders: [], owners: [] }
  const found = await findProfiles(search)
  return new Map(
    await Promise.all(
      found.map(async ({ name }) => [name, mergeLayers(await readLayers(name, search))] as const),
    ),
  )
}

const wanted = (offline: Profile, parts: DraftParts): Profile => {
  const { name, command, needs, pass, set, hasNetwork } = parts
  const network = needs.network.length > 0 && hasNetwork
  return {
    ...structuredClone(offline),
    name,
    description: `Learned from ${command}`.slice(0, 500),
    filesystem: {
      read: [...offline.filesystem.read, ...needs.read].map((grant) => ({ ...grant })),
      write: needs.write.map((grant) => ({ ...grant })),
      mounts: 'none',
      tmp_bytes: scratchFor(needs.peaks.scratchBytes),
      home: 'private',
    },
    network: network
      ? { mode: 'allowlist', allow: needs.network.map((grant) => ({ ...grant })) }
      : { mode: 'none', allow: [] },
    credentials: [],
    exec: needs.started.length > 0 ? 'any' : 'none',
    environment: { pass: [...pass], set: { ...set } },
    limits: { ...offline.limits, ...limitsFor(needs) },
    assertions: assertionsOf(parts),
  }
}

// Twice what was seen, since a drive never shows the worst: in steps that people can read.
const limitsFor = ({ peaks }: Needs): Pick<Profile['limits'], 'memory_bytes' | 'pids' | 'open_files'> => ({
  memory_bytes: Math.max(2, Math.ceil((2 * peaks.memoryBytes) / (64 * mebibyte))) * 64 * mebibyte,
  pids: Math.max(16, Math.ceil((1.5 * peaks.threads) / 4) * 4),
  open_files: Math.max(64, 2 ** Math.ceil(Math.log2(2 * peaks.descriptors))),
})

const scratchFor = (bytes: number): number =>
  Math.max(1, 2 ** Math.ceil(Math.log2((2 * bytes) / mebibyte + 1))) * mebibyte

/** What it asked for and did not get stays so: whoever widens the draft for that has to take a line out. */
const assertionsOf = ({ withheld, needs }: DraftParts): Profile['assertions'] => {
  const all = [...usual(needs), ...asked(withheld)]
  return all.filter(({ assert }, index) => all.findIndex((other) => other.assert === assert) === index)
}

const usual = (needs: Needs): Profile['assertions'] => [
  { assert: 'cannot read /etc/shadow', reason: 'passwords of the machine' },
  { assert: 'cannot write /usr/bin/*', reason: 'what the next server runs' },
  { assert: 'cannot exceed pids', reason: 'a fork bomb stays in its sandbox' },
  ...(needs.started.length === 0
    ? [{ assert: 'cannot exec /usr/bin/env', reason: 'it started no other program' }]
    : []),
  ...(needs.network.length === 0
    ? [{ assert: 'cannot connect 1.1.1.1:443', reason: 'it needed no network' }]
    : []),
]

const asked = (withheld: readonly Withheld[]): Profile['assertions'] =>
  withheld
    .filter(
      ({ path }) =>
        /^\/[A-Za-z0-9._@+/-]+$/.test(path) && !/^\/(proc|sys|dev|home\/user|tmp)(\/|$)/.test(path),
    )
    .slice(0, assertionLimit)
    .map(({ path, why }) => ({
      assert: `cannot read ${path}`,
      reason: `asked for while it was learned: ${why}`.slice(0, 300),
    }))
