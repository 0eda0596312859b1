// Grants that another grant of the same profile already decides: whoever removes one of them believes it gone.
import type { Step } from '../schema/problem.ts'
import type { Profile } from '../schema/types.gen.ts'
import { liesWithin } from './narrowing.ts'

type Entry = Profile['network']['allow'][number]

export interface Shadow {
  readonly at: readonly Step[]
  readonly got: string
  readonly why: string
}

/** Every host and path of one profile’s own file that another entry of it covers, and hosts without a network. */
export function shadowsOf(profile: Profile): readonly Shadow[] {
  return [...hosts(profile), ...paths(profile)]
}

function hosts({ network: { mode, allow } }: Profile): readonly Shadow[] {
  return allow.flatMap((entry, index): Shadow[] => {
    const at = ['network', 'allow', index]
    const got = `${entry.host}:${entry.port}`
    if (mode === 'none') return [{ at, got, why: 'has no effect: network.mode is none' }]
    const above = allow.findIndex(
      (other, place) => place !== index && covers(other, entry) && !(covers(entry, other) && place > index),
    )
    const by = allow[above]
    if (by === undefined) return []
    const difference = differenceOf(by, entry) ?? 'removing one leaves the other'
    return [
      { at, got, why: `is shadowed by ${by.host}:${by.port} of network.allow[${above}]: ${difference}` },
    ]
  })
}

/** The first thing of which one says something else than the other. */
function differenceOf(by: Entry, entry: Entry): string | null {
  const key = (['address', 'private'] as const).find((each) => by[each] !== entry[each])
  return key === undefined ? null : `the one says ${key}: ${by[key]}, the other ${key}: ${entry[key]}`
}

/** Whatever the addresses: two entries for one name are what somebody reads differently. */
function covers(above: Entry, entry: Entry): boolean {
  if (above.port !== entry.port) return false
  return (
    above.host === entry.host || (above.host.startsWith('*.') && entry.host.endsWith(above.host.slice(1)))
  )
}

function paths({ filesystem }: Profile): readonly Shadow[] {
  return (['read', 'write'] as const).flatMap((access) =>
    filesystem[access].flatMap(({ path }, index): Shadow[] => {
      const above = filesystem[access].findIndex(
        (other, place) =>
          place !== index && liesWithin(path, other.path) && !(path === other.path && place > index),
      )
      const by = filesystem[access][above]
      if (by === undefined) return []
      const why = `is shadowed by ${by.path} of filesystem.${access}[${above}]: removing one leaves the other`
      return [{ at: ['filesystem', access, index], got: path, why }]
    }),
  )
}

/** Every path of one profile’s own file that a launch would mount into another of the whole, of which one is to write. */
export function overlapsOf(own: Profile, whole: Profile): readonly Shadow[] {
  const grants = (['read', 'write'] as const).flatMap((access) =>
    whole.filesystem[access].map(({ path }) => ({ access, path })),
  )
  return (['read', 'write'] as const).flatMap((access) =>
    own.filesystem[access].flatMap(({ path }, index): Shadow[] => {
      const isSelf = (grant: (typeof grants)[number]): boolean =>
        grant.access === access && grant.path === path
      const by = grants.find(
        (grant) =>
          !isSelf(grant) &&
          (access === 'write' || grant.access === 'write') &&
          (liesWithin(path, grant.path) || liesWithin(grant.path, path)),
      )
      if (by === undefined) return []
      const why = `overlaps ${by.path} of filesystem.${by.access}: a launch would be refused`
      return [{ at: ['filesystem', access, index], got: path, why }]
    }),
  )
}
