// What the launcher is told of one sandbox: its tool, the tool's arguments, and what is staged for it. Pure.
import { mountsOf, type SandboxSpec } from '../spec.ts'
import { bubblewrapArguments } from './argv.ts'
import type { BubblewrapPlan } from './driver.ts'
import type { ProcMask } from './masks.ts'
import { stageSources } from './staging.ts'

/** What the daemon knows of its machine, found once. */
export interface BubblewrapTools {
  /** Host path of sallyport-init */
  readonly initPath: string
  /** Host path of bubblewrap */
  readonly toolPath: string
  readonly procMasks: readonly ProcMask[]
  /** Whether the daemon is root, and so stages the sources */
  readonly isRoot: boolean
}

/** Returns the part of a plan that follows from the spec and the machine alone. */
export const planBubblewrap = (
  spec: SandboxSpec,
  seccomp: Uint8Array,
  { initPath, toolPath, procMasks, isRoot }: BubblewrapTools,
): Pick<BubblewrapPlan, 'driver' | 'spec' | 'launcher' | 'tool' | 'arguments' | 'covers' | 'staged'> => {
  const { staged, stagedSource } = stageSources(
    [...mountsOf(spec).map(({ source }) => source), initPath],
    isRoot,
  )
  return {
    driver: 'bubblewrap',
    spec,
    launcher: initPath,
    tool: toolPath,
    arguments: bubblewrapArguments(spec, {
      stagedSource,
      initPath: stagedSource({ source: initPath }),
      seccomp,
    }),
    covers: procMasks,
    staged,
  }
}
