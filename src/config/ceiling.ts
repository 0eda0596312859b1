// Whether a server's entry lies within its profile: mounts, egress and credentials.
import type { ProfileSettings } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import type { Layer } from './layer.ts'
import { coversGrant, coversHost, targetOf } from './narrowing.ts'
import { issue, type Issue } from './refusal.ts'

/** One issue, ERR_PROFILE_EXCEEDED, for each thing that the entry asks for and its profile does not allow. */
export function checkCeiling(
  name: string,
  entry: Config['servers'][string],
  profile: ProfileSettings,
  { document }: Layer,
): readonly Issue[] {
  const exceeded = (
    steps: readonly (string | number)[],
    got: string,
    key: string,
    expected: string,
    mend: string,
  ): Issue =>
    issue('ERR_PROFILE_EXCEEDED', document, ['servers', name, ...steps], {
      got,
      expected: `${expected}, as the profile ${profile.name} has it (${profile.decidedAt[key] ?? 'default'})`,
      mend,
    })
  const { mounts } = profile.filesystem
  return [
    ...entry.mounts.flatMap(({ access }, index) =>
      mounts === 'write' || mounts === access
        ? []
        : [
            exceeded(
              mounts === 'none' ? ['mounts', index] : ['mounts', index, 'access'],
              `a mount to ${access}`,
              'filesystem.mounts',
              mounts === 'none' ? 'no mounts' : 'mounts to read only',
              `use a profile such as workspace-${access}, or remove it`,
            ),
          ],
    ),
    ...entry.egress.flatMap((asked, index) =>
      profile.network.mode === 'allowlist' && profile.network.allow.some((above) => coversGrant(above, asked))
        ? []
        : [
            exceeded(
              ['egress', index],
              targetOf(asked),
              profile.network.mode === 'none' ? 'network.mode' : 'network.allow',
              profile.network.mode === 'none'
                ? 'no network'
                : profile.network.allow.some((above) => coversHost(above, asked))
                  ? 'no more than its list says of that host: its address, and whether private ones are allowed'
                  : 'a host and port of its list',
              'list it in a profile, or remove it',
            ),
          ],
    ),
    ...entry.credentials.flatMap(({ inject }, index) =>
      profile.credentials.includes(inject)
        ? []
        : [
            exceeded(
              ['credentials', index, 'inject'],
              inject,
              'credentials',
              profile.credentials.length === 0
                ? 'no credentials'
                : `one of ${profile.credentials.join(', ')}`,
              'choose a profile that allows it, or remove it',
            ),
          ],
    ),
  ]
}
