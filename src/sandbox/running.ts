// A sandbox while its server runs: what whoever launched it is given, the same whatever driver made it.
import type { Logger } from '../lib/logger.ts'
import type { EnforcedLimits, SandboxExit, SandboxProcess } from './driver.ts'
import { awaitExit, type HeldSandbox } from './gate.ts'
import { orphansOf } from './orphans.ts'
import type { SandboxSpec } from './spec.ts'

/** A sandbox as its driver holds it to the end. */
export interface RunningSandbox extends HeldSandbox {
  /** Host pid of the sandbox's PID 1; 0 where nobody here knows it */
  readonly initPid: number
  /** Why it is being ended; null before */
  readonly reason: SandboxExit['reason'] | null
  /** Whether whoever runs it for us was asked by somebody else to hold it still */
  readonly isPaused: boolean
  /** Resolves once nothing is left; never rejects */
  readonly ended: Promise<SandboxExit>
  /** Kills everything at once; the first reason is kept */
  end(reason: SandboxExit['reason']): void
}

/** What the driver keeps of a launch's plan for as long as the server runs. */
export interface RunningPlan {
  readonly spec: SandboxSpec
  readonly enforcedBy: EnforcedLimits
  readonly log: Logger
}

/** The confined server, as its owner has it. */
export const processOf = (
  sandbox: RunningSandbox,
  { spec, enforcedBy }: RunningPlan,
  streams: Pick<SandboxProcess, 'stdin' | 'stdout' | 'stderr'>,
): SandboxProcess => ({
  spec,
  enforcedBy,
  initPid: sandbox.initPid,
  orphans: () => orphansOf(sandbox.initPid, spec.network.mode === 'none' ? 1 : 2),
  ...streams,
  terminate: () => sandbox.channel.send({ type: 'terminate' }),
  kill: () => sandbox.end('killed'),
  abandon: () => {
    streams.stdin.end()
    sandbox.channel.end()
  },
  ending: () => sandbox.reason,
  isPaused: () => sandbox.isPaused,
  ended: sandbox.ended,
  [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
})

/** Follows init to its last word, ends the sandbox then, and returns how the server ended; null where init did not say. */
export const followReports = async (
  sandbox: RunningSandbox,
  { spec: { server, instance }, log }: RunningPlan,
  names: Readonly<Record<string, unknown>> = {},
): Promise<Pick<SandboxExit, 'code' | 'signal'> | null> => {
  try {
    const exit = await awaitExit(sandbox.channel)
    // Said before it is proven: whoever sees its streams end meanwhile is not to take it for the server's doing.
    sandbox.end(exit?.reason ?? 'sandbox-lost')
    return exit
  } catch (error) {
    log.warn({ server, instance, ...names, error }, 'sandbox broke its control channel')
    sandbox.end('sandbox-lost')
    return null
  }
}
