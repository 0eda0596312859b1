// gVisor's runsc in place of the kernel: what is another there, what that leaves of a sandbox's promises, and what it needs.
import { lstat } from 'node:fs/promises'
import { basename } from 'node:path'
import { SallyportError } from '../../errors.ts'
import type { InnerLimit } from '../limits/limits.ts'
import { mountsOf, type SandboxSpec } from '../spec.ts'
import type { EngineInfo } from './answers.ts'

/** Whether a runtime of the engine is gVisor, by its program or its name. */
export const isGvisor = (runtime: string | null, { Runtimes, DefaultRuntime }: EngineInfo): boolean => {
  const name = runtime ?? DefaultRuntime
  return /^runsc\b/.test(basename(describe(Runtimes[name]).path ?? name)) || /^runsc\b/.test(name)
}

/**
 * Refuses a runsc that would keep init from its supervisor, and a sandbox that runsc cannot build.
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE with the argument that is missing from the engine’s daemon.json.
 */
export const judgeGvisor = (
  name: string,
  info: EngineInfo,
  network: SandboxSpec['network']['mode'],
): void => {
  const { path, runtimeArgs } = describe(info.Runtimes[name])
  // What the engine starts itself has no arguments where it tells none.
  const told = runtimeArgs ?? (path === undefined || !isProgram(path) ? undefined : [])
  const hasSockets = told?.some((argument) =>
    /^--?(host-uds=(open|all)|fsgofer-host-uds(=true)?)$/.test(argument),
  )
  // A runtime that is a shim has its arguments in a file of its own, which the engine does not tell.
  if (told !== undefined && hasSockets !== true)
    throw unenforceable(
      'runtime',
      `runtime ${name} lets no sandbox connect to the supervisor's socket; add "--host-uds=open" to its runtimeArgs in the engine’s daemon.json`,
    )
  if (network !== 'none')
    throw unenforceable(
      'network.mode',
      `runtime ${name} has no listener for calls that are refused (seccomp’s user notification) and takes no route that leads every address to the relay, which the way out of network.mode: allowlist is made of; use the engine’s usual runtime, or a profile without a network`,
    )
}

const isProgram = (path: string): boolean => basename(path) === 'runsc'

/** Limits of setrlimit(2) that gVisor refuses to set: pending signals and message queues. */
const unsettable: ReadonlySet<number> = new Set([11, 12])

/**
 * What init can set there. gVisor has no counters of namespaces, since its namespaces and queues are memory of the sandbox's
 * own, which the engine bounds, and no resource of this kernel.
 */
export const gvisorLimits = (limits: readonly InnerLimit[]): readonly InnerLimit[] =>
  limits.filter((limit) => limit.type === 'limit' && !unsettable.has(limit.resource))

/**
 * Looks, from outside, whether each source still is the file that was judged. gVisor gives every file numbers of its own,
 * so that init can say only that something is there; a source that was swapped and swapped back shows nowhere.
 *
 * Throws ERR_SANDBOX_SETUP.
 */
export const requireSameSources = async (spec: SandboxSpec): Promise<void> => {
  for (const { source, kind, dev, ino } of mountsOf(spec)) {
    const now = await lstat(source, { bigint: true }).catch(() => null)
    if (now?.dev === dev && now.ino === ino) continue
    throw new SallyportError(
      'ERR_SANDBOX_SETUP',
      `${source} is not the ${kind} any more that was judged for ${spec.server}; see who replaces it and launch again`,
      { step: 'gate', server: spec.server, source },
    )
  }
}

const describe = (runtime: unknown): { readonly path?: string; readonly runtimeArgs?: readonly string[] } =>
  typeof runtime === 'object' && runtime !== null ? runtime : {}

const unenforceable = (control: string, message: string): SallyportError =>
  new SallyportError('ERR_SANDBOX_UNENFORCEABLE', message, { control })
