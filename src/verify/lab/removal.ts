// How one control is taken out of a launch's plan: its arguments, its limits, or calls that are made on the way.
import type { BubblewrapArgument } from '../../sandbox/bubblewrap/argv.ts'
import type { BubblewrapPlan } from '../../sandbox/bubblewrap/driver.ts'
import type { LaunchPlan } from '../../sandbox/launch.ts'
import type { InnerLimit } from '../../sandbox/limits/limits.ts'
import { type Arch, decideSyscalls } from '../../sandbox/syscalls.ts'
import { strangers } from './behind.ts'
import type { Lab } from './lab.ts'

/** What an arm may show of the host: paths that no plan mounts. */
export interface Exposure {
  readonly paths: readonly string[]
  /** What the daemon's environment has and no server's may */
  readonly variables: Readonly<Record<string, string>>
  /** The probes' program on the host, which also goes between the launcher and the sandbox tool */
  readonly program: string
  /** Scripts that become the launcher after a bad start; the others leave out what makes it good, the last in its mounts alone */
  readonly launchers: { readonly spoilt: string; readonly careless: string; readonly sharing: string }
}

/** Takes a control out of a plan: what of the plan is otherwise without it. */
export type RemoveOf<Plan extends LaunchPlan> = (plan: Plan, exposure: Exposure) => Partial<Plan>

export type Remove = RemoveOf<BubblewrapPlan>

/** The architecture of this machine, as the table of calls names it. */
export const arch: Arch = process.arch === 'arm64' ? 'arm64' : 'x64'

const table = decideSyscalls({ base: 'strict', allow: [], deny: [] })

/** Returns the number of a call here, or null where this architecture has none. */
export const callNumber = (name: string): number | null => table.get(name)?.numbers[arch] ?? null

/** A filter of one instruction: allow. */
export const filterForNothing = new Uint8Array([0x06, 0, 0, 0, 0x00, 0x00, 0xff, 0x7f])

/** A filter that refuses nothing. */
export const withoutFilter: Remove = ({ arguments: all }) => {
  const place = all.indexOf('--seccomp') + 1
  return { arguments: all.map((it, index) => (index === place ? { data: filterForNothing } : it)) }
}

/** Leaves out limits of the inside, whatever the driver. */
export const withoutInner =
  (isTaken: (limit: InnerLimit) => boolean) =>
  ({ innerLimits }: Inner): Inner => ({ innerLimits: innerLimits.filter((limit) => !isTaken(limit)) })

type Inner = Pick<LaunchPlan, 'innerLimits'>

/** Leaves out every counter of the user namespace. */
export const withoutCounters = withoutInner(({ type }) => type === 'counter')

/** Takes two things out of a plan of either driver. */
export const both =
  <Plan extends LaunchPlan>(one: RemoveOf<Plan>, other: RemoveOf<Plan>): RemoveOf<Plan> =>
  (plan, exposure) => {
    const half = one(plan, exposure)
    return { ...half, ...other({ ...plan, ...half }, exposure) }
  }

/** Leaves out options that have no value. */
export const withoutOptions =
  (...options: string[]): Remove =>
  ({ arguments: all }) => ({ arguments: all.filter((it) => typeof it !== 'string' || !options.includes(it)) })

/** Leaves out an option and the values behind it, wherever `isTaken` says so. */
export const withoutRuns =
  (length: number, isTaken: (run: readonly BubblewrapArgument[]) => boolean): Remove =>
  ({ arguments: all }) => {
    const kept: BubblewrapArgument[] = []
    for (let index = 0; index < all.length;)
      if (isTaken(all.slice(index, index + length))) index += length
      else kept.push(all[index++] ?? '')
    return { arguments: kept }
  }

/** Replaces an argument wherever it is. */
export const replaced =
  (from: string, to: string): Remove =>
  ({ arguments: all }) => ({ arguments: all.map((it) => (it === from ? to : it)) })

/** Puts more before the folder is sealed, which is the root or /dev. */
export const adding =
  (folder: '/' | '/dev', more: readonly string[]) =>
  ({ arguments: all }: Pick<BubblewrapPlan, 'arguments'>): Pick<BubblewrapPlan, 'arguments'> => {
    const seal = all.findIndex((it, index) => it === '--remount-ro' && all[index + 1] === folder)
    return { arguments: [...all.slice(0, seal), ...more, ...all.slice(seal)] }
  }

/** Mounts more, read-only: sources and where they are shown, under staging names that begin with `name`. */
export const showing =
  (name: string, more: readonly (readonly [source: string, target: string])[]) =>
  (plan: BubblewrapPlan): Partial<BubblewrapPlan> => {
    const isStaged = plan.staged.length > 0
    const extra = more.map(([source, target], index) => ({ source, target, staging: `${name}-${index}` }))
    const binds = extra.flatMap(({ source, target, staging }) => [
      '--ro-bind',
      isStaged ? `/tmp/${staging}` : source,
      target,
    ])
    return {
      ...adding('/', binds)(plan),
      staged: isStaged
        ? [...plan.staged, ...extra.map(({ source, staging }) => ({ source, staging }))]
        : plan.staged,
    }
  }

/** Shows what no plan mounts. */
export const exposed: Remove = (plan, { paths }) =>
  showing(
    'verify',
    paths.map((path) => [path, path]),
  )(plan)

/** Holds nothing. */
export const nothingOutside: BubblewrapPlan['outerLimits'] = {
  joinFiles: [],
  watch() {},
  hasRunOut: () => false,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}

/** One call with some of its arguments: number of the argument, mask, value. `name=ERRNO` fails with it instead. */
export type Call = readonly [name: string, ...when: readonly (readonly [number, number, number])[]]

/** The rules for the probes' program, by which these calls are not made, and return 0 or fail. See sandbox/probes/without.c. */
export const rulesFor = (calls: readonly Call[]): readonly string[] =>
  calls.flatMap(([call, ...when]) => {
    const [name = '', errno] = call.split('=')
    const number = callNumber(name)
    const rule = [number, ...when.flat()].join(' ')
    return number === null ? [] : [errno === undefined ? rule : `=${errno} ${rule}`]
  })

const toolPlace = 'verify-tool'

/**
 * Puts the probes' program in the sandbox tool's place: it becomes the tool, and these calls return 0 there without being made.
 * `leak` is a folder that it leaves open.
 */
export const withoutCalls =
  (calls: readonly Call[], leak: string | null = null): Remove =>
  ({ arguments: all, staged, tool }, { program }) => {
    const isStaged = staged.length > 0
    return {
      tool: isStaged ? `/tmp/${toolPlace}` : program,
      staged: isStaged ? [...staged, { source: program, staging: toolPlace }] : staged,
      arguments: [tool, ...rulesFor(calls), ...(leak === null ? [] : [`+${leak}`]), '', ...all],
    }
  }

/** The host's network. */
export const withoutNetwork = withoutOptions('--unshare-net')

/** The daemon's variables, passed on as if a profile said so. */
export const withVariables: Remove = ({ spec }, { variables }) => {
  const passed = Object.entries(variables).map(
    ([name, value]) => [name, { value, origin: 'pass' as const }] as const,
  )
  return { spec: { ...spec, environment: { ...spec.environment, ...Object.fromEntries(passed) } } }
}

/** A name server that knows names which nobody granted; the host's network where there is none. */
export const withStrangers: Remove = (plan, exposure) => {
  const { spec } = plan
  const { network } = spec
  if (network.mode === 'none') return withoutNetwork(plan, exposure)
  const more = strangers.map((host) => ({ host, port: network.grants[0]?.port ?? 443 }))
  return { spec: { ...spec, network: { ...network, grants: [...network.grants, ...more] } } }
}

/** A launch that has a way out, where the profile gives it none. */
export const connected = (lab: Lab): Lab =>
  lab.openDoor !== null
    ? lab
    : {
        ...lab,
        profile: { ...lab.profile, network: { ...lab.profile.network, mode: 'allowlist' } },
        server: { ...lab.server, egress: [lab.grant] },
        openDoor: lab.doors.forAll,
      }

/** A network of its own, and nobody in it who leads out. */
export const withoutRelay = ({ spec }: BubblewrapPlan): Partial<BubblewrapPlan> => {
  return { spec: { ...spec, network: { mode: 'none' } } }
}

/** The relay's filter and that of a server that is one program: each refuses calls of other architectures too. */
export const withoutOtherFilters = ({ spec }: BubblewrapPlan): Partial<BubblewrapPlan> => {
  return { spec: { ...spec, network: { mode: 'none' }, exec: 'any' } }
}
