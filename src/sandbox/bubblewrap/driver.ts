// The bubblewrap driver: starts the launcher, checks what init found inside, and opens the gate.
//
//   daemon == spawn ==> sallyport-init outer == execve ==> bwrap == clone ==> sallyport-init init == fork ==> server
//     |                                                                           |                            |
//     |<============ control channel: plan, ready, go, started, exited ==========>|                            |
//     |<=========================== stdin, stdout, stderr of the server ======================================>|
import type { ChildProcess } from 'node:child_process'
import { enough, SallyportError } from '../../errors.ts'
import { isShortage } from '../../lib/missing.ts'
import type { Order } from '../control/control.ts'
import { type GatedSandbox, type GatePlan, openGate, reachGate } from '../gate.ts'
import { isStopped } from '../proof.ts'
import type { BubblewrapArgument } from './argv.ts'
import { coverOrders, coverProof } from './covers.ts'
import { startLauncher } from './launchers.ts'
import type { ProcMask } from './masks.ts'
import type { StagedSource } from './staging.ts'
import { ConfinedTree, type TreePlan } from './tree.ts'

/** A launch as the driver takes it: nothing is left to decide. */
export interface BubblewrapPlan extends TreePlan, GatePlan {
  readonly driver: 'bubblewrap'
  /** Host path of sallyport-init */
  readonly launcher: string
  /** Host path of bubblewrap */
  readonly tool: string
  readonly arguments: readonly BubblewrapArgument[]
  /** What of /proc the launcher has covered before init reports */
  readonly covers: readonly ProcMask[]
  /** What the launcher binds as root before it drops; empty where the daemon is not root */
  readonly staged: readonly StagedSource[]
}

/**
 * Builds the sandbox and returns it waiting at its gate, every mount proven to be what the plan opened.
 *
 * `start` gives a launcher of that path that nobody has told anything; a new one unless given.
 * Throws ERR_SANDBOX_SETUP with what the launcher wrote to stderr, or ERR_SHORTAGE where there is not enough to start it with;
 * nothing is left then.
 */
export const confine = async (
  plan: BubblewrapPlan,
  {
    signal,
    start = startLauncher,
  }: { readonly signal: AbortSignal; readonly start?: (path: string) => Promise<ChildProcess> },
): Promise<GatedSandbox> => {
  const tree = new ConfinedTree(await launcherOf(plan, start), plan)
  try {
    tree.channel.send(...launcherOrders(plan))
    await reachGate(tree, plan.spec, { signal, proof: coverProof(plan.spec.server, plan.covers) })
    await tree.identifyInit()
  } catch (error) {
    await tree[Symbol.asyncDispose]()
    throw error
  }
  return {
    initPid: tree.initPid,
    ended: tree.ended,
    isLost: () => tree.isLost,
    isStopped: () => isStopped(tree.initPid),
    open: ({ signal }) => openGate(tree, plan, { signal }),
    [Symbol.asyncDispose]: () => tree[Symbol.asyncDispose](),
  }
}

const launcherOf = async (
  { spec, launcher, outerLimits }: BubblewrapPlan,
  start: (path: string) => Promise<ChildProcess>,
): Promise<ChildProcess> => {
  try {
    return await start(launcher)
  } catch (cause) {
    // Nothing was started, so nobody else will take the limits down.
    await outerLimits[Symbol.asyncDispose]()
    const isShort = isShortage(cause)
    throw new SallyportError(
      isShort ? 'ERR_SHORTAGE' : 'ERR_SANDBOX_SETUP',
      `the launcher of ${spec.server} could not be started: ${SallyportError.from(cause).message}; ${isShort ? enough : `see that ${launcher} is whole`}`,
      { step: 'confine', server: spec.server, launcher },
      { cause },
    )
  }
}

const launcherOrders = (plan: BubblewrapPlan): Order[] => [
  ...plan.outerLimits.joinFiles.map((file): Order => ({ type: 'cgroup', file })),
  ...plan.staged.map((mount): Order => ({ type: 'mount', ...mount })),
  { type: 'ids', uid: plan.spec.hostUid, gid: plan.spec.hostGid },
  ...coverOrders(plan.covers),
  { type: 'tool', path: plan.tool },
  ...plan.arguments.map((argument): Order =>
    typeof argument === 'string' ? { type: 'arg', value: argument } : { type: 'data', bytes: argument.data },
  ),
  { type: 'exec' },
]
