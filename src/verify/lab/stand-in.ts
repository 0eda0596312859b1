// The probes' program in the place of a server: everything that the server's own launch plans, and another program in it.
import { realpath } from 'node:fs/promises'
import { planBubblewrap } from '../../sandbox/bubblewrap/plan.ts'
import { withUnsettledTried } from '../../sandbox/fingerprint/fingerprint.ts'
import type { LaunchHost } from '../../sandbox/host.ts'
import { findProbesBinary } from '../../sandbox/init-binary.ts'
import type { LaunchPlan } from '../../sandbox/launch.ts'
import { needMount } from '../../sandbox/mounts/mount-source.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import { alsoMounted } from './container-removal.ts'

const target = '/sallyport/bin/sallyport-probes'

/**
 * Returns the plan with the probes' program, started with these arguments. Beside the program, and its one mount, nothing
 * of it is other than in the server's launch: mounts, variables, network, filter, limits, user, image.
 */
export const standInFor = async (
  plan: LaunchPlan,
  args: readonly string[],
  host: Pick<LaunchHost, 'fingerprint' | 'seccompOf' | 'tools'>,
): Promise<LaunchPlan> => {
  const source = await realpath(await findProbesBinary())
  const program = await needMount(plan.spec.server, {
    source,
    target,
    access: 'read',
    reason: 'the probes of a verification',
    origin: 'program',
  })
  const { mounts } = plan.spec
  const isGuard = (mount: (typeof mounts)[number]): boolean => mount.origin === 'protected'
  const spec: SandboxSpec = {
    ...plan.spec,
    program: { path: target, argv: ['sallyport-probes', ...args] },
    mounts: [...mounts.filter((mount) => !isGuard(mount)), program, ...mounts.filter(isGuard)],
  }
  if (plan.driver === 'docker') return { ...alsoMounted(plan, source, target), spec }
  const found = await withUnsettledTried(host.fingerprint, false)
  const seccomp = host.seccompOf(spec.syscalls, spec.network.mode)
  return { ...plan, ...planBubblewrap(spec, seccomp, host.tools(found)) }
}
