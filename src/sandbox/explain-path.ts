// What a path gets in the sandboxes of a profile, and what decides it: asked of the plan that a launch would make here and now.
import { realpathSync } from 'node:fs'
import { SallyportError } from '../errors.ts'
import { isWithin } from '../lib/path-overlap.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import { presentProcMasks } from './bubblewrap/masks.ts'
import { type Shown, showPath } from './bubblewrap/shown.ts'
import type { Got } from './bubblewrap/shown-entry.ts'
import { type DenialFacts, findDenials } from './mounts/denials.ts'
import { type FilesystemPlan, planFilesystem } from './mounts/filesystem.ts'
import { denialOf } from './mounts/mount-rules.ts'
import type { SandboxUser } from './mounts/reachable.ts'

type Profile = Pick<ProfileSettings, 'name' | 'filesystem' | 'network'>

/** What one path gets. `denied`: no launch may show it; `refused`: no launch under this profile would start here. */
export interface ExplainedPath {
  readonly gets: Got | 'denied' | 'refused'
  /** Why, a clause without a full stop */
  readonly because: string
  /** The grant, by list and path; `scratch` for its size; `ungranted` where a grant could change it; `always` where none could */
  readonly decidedBy:
    | { readonly list: 'read' | 'write'; readonly path: string }
    | 'scratch'
    | 'ungranted'
    | 'always'
}

/** Explains an absolute path for launches under a daemon of this user on this machine, with what its files are now. */
export const explainPath = async (
  profile: Profile,
  asked: string,
  user: SandboxUser,
  facts: DenialFacts,
): Promise<ExplainedPath> => {
  const plan = await planOrRefusal(profile, user, facts)
  if ('gets' in plan) return plan
  const shown = showPath(
    {
      ...plan,
      hasDoor: profile.network.mode === 'allowlist',
      hasCredentialFiles: false,
      procMasks: await presentProcMasks(),
    },
    user,
    asked,
  )
  const { gets, because, path } = shown
  const told = path === asked ? because : `${asked} leads to ${path}; ${because}`
  const unshown =
    gets === 'absent' && shown.mount === null && !isWithin(path, '/proc')
      ? unshownPath(profile, path, facts)
      : null
  if (unshown !== null) return { ...unshown, because: told.replace(because, unshown.because) }
  return { gets, because: told, decidedBy: deciding(profile, shown) }
}

/** The user of the sandboxes of whoever asks: himself, and under root somebody who owns nothing. */
export const sandboxUserOf = (uid: number, gid: number): SandboxUser =>
  uid === 0 ? { uid: -1, gid: -1, isSelf: false } : { uid, gid, isSelf: true }

const planOrRefusal = async (
  profile: Profile,
  user: SandboxUser,
  facts: DenialFacts,
): Promise<FilesystemPlan | ExplainedPath> => {
  try {
    const server = { name: 'any server', mounts: [], package: null }
    return await planFilesystem({ server, profile, programs: [], user }, facts)
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error
    const target = error.details['target']
    return {
      gets: 'refused',
      because: `no launch under this profile would start here: ${error.message}`,
      decidedBy: grantAt(profile, target) ?? 'always',
    }
  }
}

const grantAt = (
  { filesystem }: Profile,
  path: unknown,
): Exclude<ExplainedPath['decidedBy'], string> | null => {
  const list = (['write', 'read'] as const).find((name) =>
    filesystem[name].some((grant) => grant.path === path),
  )
  return list === undefined || typeof path !== 'string' ? null : { list, path }
}

/** What no launch may show, and what is granted but not on this machine. */
const unshownPath = (profile: Profile, path: string, facts: DenialFacts): ExplainedPath | null => {
  const real = realOrSame(path)
  const denial = denialOf(real, 'read', findDenials(facts, [real]))
  if (denial !== null && !denial.isAbove)
    return {
      gets: 'denied',
      because: `it ${denial.why}; a launch that mounts it is refused`,
      decidedBy: 'always',
    }
  const grant = profile.filesystem.read.find((one) => isWithin(path, one.path))
  if (grant === undefined) return null
  return {
    gets: 'absent',
    because: `${grant.path} is granted, but this machine has nothing there, and a launch leaves it out`,
    decidedBy: { list: 'read', path: grant.path },
  }
}

const realOrSame = (path: string): string => {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

const deciding = (profile: Profile, { gets, mount, path }: Shown): ExplainedPath['decidedBy'] => {
  if (mount !== null) {
    const isRuntime = mount.origin === 'runtime' && !isWithin(mount.target, '/etc')
    if (mount.origin === 'protected' && mount.access === 'read') return 'always'
    return (
      grantAt(profile, isRuntime ? '/usr' : mount.target) ??
      grantAt(profile, profile.filesystem.write.find(({ path }) => isWithin(mount.target, path))?.path) ??
      'always'
    )
  }
  if (gets === 'private') return 'scratch'
  return (gets === 'absent' && !isWithin(path, '/proc')) || gets === 'partly' ? 'ungranted' : 'always'
}
