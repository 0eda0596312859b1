// What is wrong with a profile, and what is right but dangerous, each with its place and why.
import { SallyportError } from '../errors.ts'
import type { Step } from '../schema/problem.ts'
import { formatPath } from '../schema/problem.ts'
import type { Profile } from '../schema/types.gen.ts'
import { errnoOf } from '../lib/missing.ts'
import { dangersOf } from './dangers.ts'
import { isThere } from './is-there.ts'
import { checkLayers, mergeLayers } from './profile.ts'
import { readLayers, type ProfileLayer, type ProfileSearch } from './profile-layers.ts'
import { formatIssue, type Issue } from './refusal.ts'
import { overlapsOf, shadowsOf } from './shadows.ts'

export interface Finding {
  /** `error`: the profile does not load; `warning`: it does, and somebody should look */
  readonly level: 'error' | 'warning'
  /** One line: file, line and column, path, what, why */
  readonly message: string
}

export interface LintReport {
  readonly profile: string
  readonly valid: boolean
  readonly findings: readonly Finding[]
}

/** Why no launch would mount a path, or null; the sandbox knows, since it is what refuses. */
export type MountJudge = (path: string, access: 'read' | 'write') => string | null

/**
 * Lints a profile, by name or path. Everything that would refuse it is an error; dangerous grants, overrides, grants
 * that another one covers, and paths that do not exist here or that no launch mounts are warnings. Rejects with ERR_PROFILE_UNKNOWN where there is no such profile.
 */
export async function lintProfile(
  nameOrPath: string,
  search: ProfileSearch,
  checkSyscalls: (policy: Profile['syscalls']) => void,
  judgeMount: MountJudge,
): Promise<LintReport> {
  const wrong: Issue[] = []
  try {
    const layers = await readLayers(nameOrPath, search, (issues) => void wrong.push(...issues))
    const errors = [
      ...[...wrong, ...checkLayers(layers)].map(formatIssue),
      ...layers.flatMap((layer) => syscallErrors(layer, checkSyscalls)),
    ]
    const [own] = layers
    const warnings = own === undefined ? [] : await warningsOf(own, layers, judgeMount)
    return report(own?.name ?? nameOrPath, errors, warnings)
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error
    // A parent that nobody finds is one more mistake of a file that was read; a profile that nobody finds is no report.
    if (error.code === 'ERR_PROFILE_UNKNOWN' && wrong.length === 0) throw error
    const said = wrong.map(formatIssue)
    const { problems } = error.details
    const rest = Array.isArray(problems) ? problems.map(String) : [error.message]
    return report(nameOrPath, [...said, ...rest], [])
  }
}

function report(profile: string, errors: readonly string[], warnings: readonly string[]): LintReport {
  const findings = [
    ...errors.map((message) => ({ level: 'error', message }) as const),
    ...warnings.map((message) => ({ level: 'warning', message }) as const),
  ]
  return { profile, valid: errors.length === 0, findings }
}

/** The sandbox knows the names; it throws on one that is none. */
function syscallErrors(
  { document, profile }: ProfileLayer,
  check: (policy: Profile['syscalls']) => void,
): readonly string[] {
  return (['allow', 'deny'] as const).flatMap((list) =>
    profile.syscalls[list].flatMap((name, index) => {
      try {
        check({ base: 'strict', allow: [name], deny: [] })
        return []
      } catch (error) {
        if (!(error instanceof SallyportError)) throw error
        return [`${place(document, ['syscalls', list, index])}: ${error.message.replace(/^[^:]*: /, '')}`]
      }
    }),
  )
}

/** Of the profile's own file alone: what it extends is linted under its own name. */
async function warningsOf(
  { document, profile }: ProfileLayer,
  layers: readonly ProfileLayer[],
  judgeMount: MountJudge,
): Promise<readonly string[]> {
  const unmounted: string[] = []
  for (const access of ['read', 'write'] as const)
    for (const [index, { path }] of profile.filesystem[access].entries()) {
      const why = await whyNotMounted(path, access, judgeMount)
      if (why !== null) unmounted.push(`${place(document, ['filesystem', access, index])}: ${path} ${why}`)
    }
  const dangers = dangersOf(profile).map(
    ({ at, got, why }) => `${place(document, at)}: ${got} is dangerous: ${why}`,
  )
  const shadows = shadowsOf(profile).map(({ at, got, why }) => `${place(document, at)}: ${got} ${why}`)
  const unread = profile.draft
    ? [
        `${place(document, ['draft'])}: it is a draft that nobody has read; read every grant, then take this line away`,
      ]
    : []
  const overlaps = overlapsOf(profile, mergeLayers(layers)).map(
    ({ at, got, why }) => `${place(document, at)}: ${got} ${why}`,
  )
  return [...unread, ...dangers, ...shadows, ...overlaps, ...unmounted]
}

/** What would come of mounting a path, or null where it is mounted. */
async function whyNotMounted(
  path: string,
  access: 'read' | 'write',
  judgeMount: MountJudge,
): Promise<string | null> {
  try {
    if (!(await isThere(path)))
      return `does not exist on this machine: a launch ${access === 'read' ? 'leaves it out' : 'would be refused'}`
    const why = judgeMount(path, access)
    return why === null ? null : `${why}: a launch would be refused`
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === null || error instanceof SallyportError) throw error
    return `cannot be looked at by uid ${process.geteuid?.()} (${errno}): a launch by it would be refused`
  }
}

function place(document: ProfileLayer['document'], at: readonly Step[]): string {
  const found = document.locate(at, 'value')
  const where = found === null ? document.path : `${document.path}:${found.line}:${found.column}`
  return `${where}: ${formatPath(at)}`
}
