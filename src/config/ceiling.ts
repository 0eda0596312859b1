// Whether a server's entry lies within its profile: mounts, egress and credentials.
import type { Step } from '../schema/problem.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import type { Layer } from './layer.ts'
import { coversGrant, coversHost, targetOf } from './narrowing.ts'
import { issue, type Issue } from './refusal.ts'

type Entry = Config['servers'][string]

/** What an entry asks for and its profile does not allow. */
interface Excess {
  /** Where it stands, below the entry */
  readonly at: readonly Step[]
  readonly got: string
  /** The profile's key that decides */
  readonly key: string
  readonly expected: string
  readonly mend: string
}

/** One issue, ERR_PROFILE_EXCEEDED, for each thing that the entry asks for and its profile does not allow. */
export function checkCeiling(
  name: string,
  entry: Entry,
  profile: ProfileSettings,
  { document }: Layer,
): readonly Issue[] {
  const found = [
    ...mountsAbove(entry, profile),
    ...egressAbove(entry, profile),
    ...credentialsAbove(entry, profile),
  ]
  return found.map(({ at, got, key, expected, mend }) =>
    issue('ERR_PROFILE_EXCEEDED', document, ['servers', name, ...at], {
      got,
      expected: `${expected}, as the profile ${profile.name} has it (${profile.decidedAt[key] ?? 'default'})`,
      mend,
    }),
  )
}

function mountsAbove(entry: Entry, { filesystem: { mounts } }: ProfileSettings): readonly Excess[] {
  return entry.mounts.flatMap(({ access }, index) =>
    mounts === 'write' || mounts === access
      ? []
      : [
          {
            at: mounts === 'none' ? ['mounts', index] : ['mounts', index, 'access'],
            got: `a mount to ${access}`,
            key: 'filesystem.mounts',
            expected: mounts === 'none' ? 'no mounts' : 'mounts to read only',
            mend: `use a profile such as workspace-${access}, or remove it`,
          },
        ],
  )
}

function egressAbove(entry: Entry, { network: { mode, allow } }: ProfileSettings): readonly Excess[] {
  return entry.egress.flatMap((asked, index) =>
    mode === 'allowlist' && allow.some((above) => coversGrant(above, asked))
      ? []
      : [
          {
            at: ['egress', index],
            got: targetOf(asked),
            key: mode === 'none' ? 'network.mode' : 'network.allow',
            expected:
              mode === 'none'
                ? 'no network'
                : allow.some((above) => coversHost(above, asked))
                  ? 'no more than its list says of that host: its address, and whether private ones are allowed'
                  : 'a host and port of its list',
            mend: 'list it in a profile, or remove it',
          },
        ],
  )
}

function credentialsAbove(entry: Entry, { credentials }: ProfileSettings): readonly Excess[] {
  return entry.credentials.flatMap(({ inject }, index) =>
    credentials.includes(inject)
      ? []
      : [
          {
            at: ['credentials', index, 'inject'],
            got: inject,
            key: 'credentials',
            expected: credentials.length === 0 ? 'no credentials' : `one of ${credentials.join(', ')}`,
            mend: 'choose a profile that allows it, or remove it',
          },
        ],
  )
}
