// How one control is taken out of a container's plan: what the engine is asked for, limits, or calls that are made on the way.
import { parseJson } from '../../lib/parse-json.ts'
import { initCommand } from '../../sandbox/bubblewrap/argv.ts'
import type { DockerPlan } from '../../sandbox/docker/driver.ts'
import type { ContainerPlan } from '../../sandbox/docker/engine.ts'
import type { Network } from '../../sandbox/spec.ts'
import { both, type Call, filterForNothing, type RemoveOf, rulesFor } from './removal.ts'

export type Remove = RemoveOf<DockerPlan>

type HostConfig = ContainerPlan['HostConfig']

const setInterfaceFlags = 0x8914

/** Changes what the engine is asked for. */
export const asking =
  (change: (asked: ContainerPlan) => ContainerPlan): Remove =>
  ({ container }) => ({ container: (folder) => change(container(folder)) })

/** Changes that part of it which is of the host. */
export const hosting = (change: (config: HostConfig) => Partial<HostConfig>): Remove =>
  asking((asked) => ({ ...asked, HostConfig: { ...asked.HostConfig, ...change(asked.HostConfig) } }))

/**
 * Puts the probes' program before init, under a name of its own: it becomes init, and these calls return 0 there without being
 * made. `more` is what it does before. See sandbox/probes/without.c.
 */
export const withoutCalls =
  (calls: readonly Call[], more: readonly string[] = []): Remove =>
  (plan, { program }) => {
    const { container } = alsoMounted(plan, program, firstTarget)
    return {
      container: (folder) => {
        const asked = container(folder)
        const { Cmd = [] } = asked
        const rules = [...more, ...rulesFor(calls)]
        return { ...asked, Entrypoint: [firstTarget], Cmd: ['without', initCommand[0], ...rules, '', ...Cmd] }
      },
    }
  }
const firstTarget = '/sallyport/first'

/** Changes the network of a sandbox that has one, and does something else to one that has none. */
export const withNetwork =
  (
    change: (network: Extract<Network, { mode: 'allowlist' }>) => Network,
    otherwise: Remove = () => ({}),
  ): Remove =>
  (plan, exposure) => {
    const { spec } = plan
    const { network } = spec
    return network.mode === 'none'
      ? otherwise(plan, exposure)
      : { spec: { ...spec, network: change(network) } }
  }

// For what goes before init, which is under the engine's filter as everything there.
const alsoAllowing = (option: string, call: string): string => {
  const [, text] = /^seccomp=(.*)$/s.exec(option) ?? []
  if (text === undefined) return option
  const filter = parseJson(text) as { readonly syscalls: readonly object[] }
  const more = { names: [call], action: 'SCMP_ACT_ALLOW' }
  return `seccomp=${JSON.stringify({ ...filter, syscalls: [...filter.syscalls, more] })}`
}

/** Filters that refuse nothing, the engine’s and ours. */
export const withoutFilter = both(
  hosting(() => ({ SecurityOpt: ['no-new-privileges', 'seccomp=unconfined'] })),
  () => ({ filter: filterForNothing }),
)
/** Nobody who leads out. */
export const withoutRelay = withNetwork(() => ({ mode: 'none' }))
/** The host's network, both by the engine and by init, which neither leaves it nor raises an interface in it. */
export const withoutNetwork = both(
  asking((asked) => ({
    ...asked,
    NetworkDisabled: false,
    HostConfig: {
      ...asked.HostConfig,
      NetworkMode: 'host',
      SecurityOpt: asked.HostConfig.SecurityOpt?.map((option: string) => alsoAllowing(option, 'mount')),
    },
  })),
  withoutCalls([['unshare'], ['ioctl', [1, 0xffff, setInterfaceFlags]]], ['user']),
)
/** Shows what is covered. */
export const unmasked = (isTaken: (path: string) => boolean): Remove =>
  hosting(({ MaskedPaths = [] }) => ({ MaskedPaths: MaskedPaths.filter((path) => !isTaken(path)) }))
/** Changes the options of every folder in memory. */
export const scratch = (from: RegExp, to: string): Remove =>
  hosting(({ Tmpfs }) => ({
    Tmpfs: Object.fromEntries(
      Object.entries(Tmpfs as Record<string, string>).map(([path, options]) => [
        path,
        options.replace(from, to),
      ]),
    ),
  }))

/** The plan with one more mount, read-only. */
export const alsoMounted = (plan: DockerPlan, source: string, target: string): DockerPlan => ({
  ...plan,
  container: (folder) => {
    const asked = plan.container(folder)
    const { Mounts = [] } = asked.HostConfig
    const BindOptions = { Propagation: 'rprivate' as const }
    const mount = { Type: 'bind' as const, Source: source, Target: target, ReadOnly: true, BindOptions }
    return { ...asked, HostConfig: { ...asked.HostConfig, Mounts: [...Mounts, mount] } }
  },
})
