// Launches that ask for more than the one that is verified: mounts, whatever the profile lets its servers mount.
import type { ServerSettings } from '../schema/settings.ts'
import { givenTarget } from './gate-controls.ts'
import type { Lab } from './lab.ts'

type Mounted = ServerSettings['mounts'][number]

/** The launch with this mount too, read-only at `givenTarget` unless it says otherwise. */
export const mounting =
  (of: (trees: Lab['trees']) => Pick<Mounted, 'source'> & Partial<Mounted>) =>
  (lab: Lab): Lab => {
    const mount = { target: givenTarget, access: 'read' as const, reason: 'a verification', ...of(lab.trees) }
    const { filesystem } = lab.profile
    return {
      ...lab,
      server: { ...lab.server, mounts: [...lab.server.mounts, mount] },
      profile: { ...lab.profile, filesystem: { ...filesystem, mounts: 'write' } },
    }
  }

/** The launch of a daemon that knows this of its host. */
export const knowing =
  (facts: Partial<Lab['host']['facts']>) =>
  (lab: Lab): Lab => ({ ...lab, host: { ...lab.host, facts: { ...lab.host.facts, ...facts } } })

/** The launch of the probes' program by itself, or of a file that is said to be such an interpreter. */
export const running = (
  lab: Lab,
  {
    interpreter = 'none',
    args = ['/sallyport/attempts'],
  }: { interpreter?: string; args?: readonly string[] } = {},
): Lab => {
  const name = 'verify-program'
  const { settings, server, probes } = lab
  return {
    ...lab,
    settings: {
      ...settings,
      allowedCommands: [...settings.allowedCommands, { name, path: probes, interpreter }],
    },
    server: { ...server, command: name, args, image: null, package: null },
  }
}
