// Launches that ask for more than the one that is verified: mounts, whatever the profile lets its servers mount.
import type { ServerSettings } from '../../schema/settings.ts'
import { givenTarget } from './gate-controls.ts'
import type { Lab } from '../lab/lab.ts'

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

/** The launch of a program, the probes’ own unless said otherwise, or of a file that is said to be such an interpreter. */
export const running = (
  lab: Lab,
  {
    name = 'verify-program',
    path = lab.probes,
    interpreter = 'none',
    args = ['/sallyport/attempts'],
  }: {
    readonly name?: string
    readonly path?: string
    readonly interpreter?: string
    readonly args?: readonly string[]
  } = {},
): Lab => {
  const { settings, server } = lab
  const allowedCommands = [...settings.allowedCommands, { name, path, interpreter }]
  return {
    ...lab,
    settings: { ...settings, allowedCommands },
    server: { ...server, command: name, args, image: null, package: null },
  }
}
