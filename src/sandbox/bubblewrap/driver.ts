// The bubblewrap driver: starts the launcher, checks what init found inside, and opens the gate.
//
//   daemon == spawn ==> sallyport-init outer == execve ==> bwrap == clone ==> sallyport-init init == fork ==> server
//     |                                                                           |                            |
//     |<============ control channel: plan, ready, go, started, exited ==========>|                            |
//     |<=========================== stdin, stdout, stderr of the server ======================================>|
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { getSystemErrorMap } from 'node:util'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import type { Order, Report, TargetReport } from '../control.ts'
import type { SandboxProcess } from '../driver.ts'
import type { SecretFile } from '../../schema/credentials.ts'
import { credentialFolder, doorTarget, mountsOf, type Network, type SandboxSpec } from '../spec.ts'
import type { InnerLimit } from '../limits.ts'
import type { BubblewrapArgument } from './argv.ts'
import type { StagedSource } from './staging.ts'
import { ConfinedTree, type TreePlan } from './tree.ts'

/** How long the launcher, bubblewrap and init may take together until the server runs, ms. */
const setupMs = 5_000

/**
 * How long init waits at each rung of its own ladder, at most, when its supervisor is gone, ms. Nobody is left whom the
 * server could answer, and on a machine without control groups nothing else ends it: all has to be gone within a second.
 */
const orphanMs = { eof: 250, term: 500 } as const

/** Secrets of one call, for a process that has them for that call alone. They are in the orders and nowhere else. */
export interface GateSecrets {
  readonly environment: Readonly<Record<string, string>>
  /** Files of `credentialFolder`, readable by the server alone */
  readonly files: readonly SecretFile[]
}

/** A launch as the driver takes it: nothing is left to decide. */
export interface BubblewrapPlan extends TreePlan {
  /** Host path of sallyport-init */
  readonly launcher: string
  /** Host path of bubblewrap */
  readonly tool: string
  readonly arguments: readonly BubblewrapArgument[]
  /** What the launcher binds as root before it drops; empty where the daemon is not root */
  readonly staged: readonly StagedSource[]
  /** What init sets for the server, from inside */
  readonly innerLimits: readonly InnerLimit[]
  readonly secrets: GateSecrets
}

/** A sandbox that stands, with nothing of the server in it yet. Disposing it ends it. */
export interface GatedSandbox extends AsyncDisposable {
  /** Starts the server. Throws ERR_SANDBOX_EXEC where its program cannot be executed; all has ended then */
  open(waiting: { readonly signal: AbortSignal }): Promise<SandboxProcess>
}

/**
 * Builds the sandbox and returns it waiting at its gate, every mount proven to be what the plan opened.
 *
 * Throws ERR_SANDBOX_SETUP with what the launcher wrote to stderr; nothing is left then.
 */
export const confine = async (
  plan: BubblewrapPlan,
  { signal }: { readonly signal: AbortSignal },
): Promise<GatedSandbox> => {
  const tree = new ConfinedTree(await spawnLauncher(plan), plan)
  try {
    tree.channel.send(...launcherOrders(plan), ...gateOrders(plan.spec))
    const ready = await expectReport(tree, plan.spec, 'ready', signal)
    requireSameTargets(plan.spec, ready.targets)
    tree.identifyInit()
  } catch (error) {
    await tree[Symbol.asyncDispose]()
    throw error
  }
  return {
    open: ({ signal }) => openGate(tree, plan, signal),
    [Symbol.asyncDispose]: () => tree[Symbol.asyncDispose](),
  }
}

const openGate = async (
  tree: ConfinedTree,
  plan: BubblewrapPlan,
  signal: AbortSignal,
): Promise<SandboxProcess> => {
  try {
    signal.throwIfAborted()
    tree.channel.send(...goOrders(plan))
    await expectReport(tree, plan.spec, 'started', signal)
  } catch (error) {
    await tree[Symbol.asyncDispose]()
    throw error
  }
  return tree.follow()
}

// An empty environment and `/`: whatever the daemon has of either would be readable in /proc of the sandbox.
// Detached, since a Ctrl-C at the daemon's terminal must reach the daemon's stop ladder, not the sandbox tool.
const spawnLauncher = async ({ spec, launcher, outerLimits }: BubblewrapPlan): Promise<ChildProcess> => {
  const child = spawn(launcher, ['outer'], {
    argv0: 'sallyport-init',
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
  })
  if (child.pid !== undefined) return child
  // Nothing was started, so nobody else will take the limits down. Without a descriptor to spare there are no streams either.
  const [cause] = (await once(child, 'spawn').catch((error: unknown) => [error])) as [unknown]
  await outerLimits[Symbol.asyncDispose]()
  throw new SallyportError(
    'ERR_SANDBOX_SETUP',
    `the launcher of ${spec.server} could not be started: ${String(cause)}; see that ${launcher} is whole and descriptors are left`,
    { step: 'confine', server: spec.server, launcher },
    { cause },
  )
}

const launcherOrders = (plan: BubblewrapPlan): Order[] => [
  ...plan.outerLimits.procsFiles.map((procs): Order => ({ type: 'cgroup', procs })),
  ...plan.staged.map((mount): Order => ({ type: 'mount', ...mount })),
  { type: 'ids', uid: plan.spec.hostUid, gid: plan.spec.hostGid },
  { type: 'tool', path: plan.tool },
  ...plan.arguments.map((argument): Order =>
    typeof argument === 'string' ? { type: 'arg', value: argument } : { type: 'data', bytes: argument.data },
  ),
  { type: 'exec' },
]

const gateOrders = (spec: SandboxSpec): Order[] => [
  ...mountsOf(spec).map(({ target }): Order => ({ type: 'target', path: target })),
  ...egressOrders(spec.network),
  { type: 'report' },
]

const egressOrders = (network: Network): Order[] =>
  network.mode === 'none'
    ? []
    : [
        { type: 'door', path: doorTarget, proxyPort: network.proxyPort, pool: network.pool },
        ...network.grants.map(({ host, port }): Order => ({ type: 'name', host, port })),
      ]

const goOrders = ({ spec, innerLimits, secrets }: BubblewrapPlan): Order[] => [
  ...spec.program.argv.map((value): Order => ({ type: 'argv', value })),
  ...Object.entries(spec.environment).map(([name, { value }]): Order => ({ type: 'env', name, value })),
  ...Object.entries(secrets.environment).map(([name, value]): Order => ({ type: 'env', name, value })),
  ...secrets.files.map(({ name, content }): Order => {
    return { type: 'file', mode: 0o400, path: `${credentialFolder}/${name}`, content }
  }),
  ...innerLimits,
  { type: 'cwd', path: spec.cwd },
  {
    type: 'options',
    oneExec: spec.exec === 'none',
    eofMs: Math.min(spec.stop.eofMs, orphanMs.eof),
    termMs: Math.min(spec.stop.termMs, orphanMs.term),
  },
  { type: 'go', program: spec.program.path },
]

const expectReport = async <T extends Report['type']>(
  tree: ConfinedTree,
  spec: SandboxSpec,
  type: T,
  signal: AbortSignal,
): Promise<Extract<Report, { type: T }>> => {
  const report = await within(tree.channel.next(), setupMs, () => tooLate(type), signal)
  const isExpected = (report: Report): report is Extract<Report, { type: T }> => report.type === type
  if (report === null) throw await tree.setupFailure()
  if (isExpected(report)) return report
  if (report.type === 'failed') throw startFailed(spec, report)
  throw new SallyportError('ERR_SANDBOX_SETUP', `init reported ${report.type} where ${type} was due`, {
    step: 'gate',
  })
}

// A source that was swapped between the plan and the mount shows here: the sandbox has then another file than was judged.
const requireSameTargets = (spec: SandboxSpec, found: readonly TargetReport[]): void => {
  const { server } = spec
  const mounts = mountsOf(spec)
  for (const [index, mount] of mounts.entries()) {
    const inside = found[index]
    if (inside !== undefined && inside.dev === mount.dev && inside.ino === mount.ino) continue
    const got =
      inside === undefined || inside.errno !== 0
        ? `nothing (errno ${inside?.errno ?? 'unknown'})`
        : `${inside.dev}:${inside.ino}`
    throw new SallyportError(
      'ERR_SANDBOX_SETUP',
      `${mount.target} in the sandbox of ${server} is not the ${mount.kind} that was judged at ${mount.source}: ` +
        `expected ${mount.dev}:${mount.ino}, got ${got}; see who replaces it and launch again`,
      { step: 'gate', server, source: mount.source, target: mount.target },
    )
  }
  if (found.length !== mounts.length)
    throw new SallyportError(
      'ERR_SANDBOX_SETUP',
      `init reported ${found.length} mounts, expected ${mounts.length}`,
      {
        step: 'gate',
        server,
      },
    )
}

const tooLate = (type: string): SallyportError =>
  new SallyportError(
    'ERR_SANDBOX_SETUP',
    `the sandbox did not report ${type} within ${setupMs} ms; see whether the machine is overloaded`,
    { step: 'gate', timeoutMs: setupMs },
  )

// The steps of init that are about the server's program rather than about the wall around it.
const programSteps: ReadonlySet<string> = new Set(['exec', 'exec once', 'cwd'])

const startFailed = (
  { server, program }: SandboxSpec,
  { errno, step, object }: Extract<Report, { type: 'failed' }>,
): SallyportError => {
  const what = `${step}: ${object}: ${errnoName(errno)}`
  const details = { step: 'gate', server, program: program.path, at: step, object, errno }
  return programSteps.has(step)
    ? new SallyportError(
        'ERR_SANDBOX_EXEC',
        `${program.path} of ${server} could not be started in its sandbox: ${what}; see that profile and mounts hold all that it needs`,
        details,
      )
    : new SallyportError(
        'ERR_SANDBOX_SETUP',
        `init could not finish the sandbox of ${server}: ${what}; run sallyport doctor to see what this machine lacks`,
        details,
      )
}

const errnoName = (errno: number): string => getSystemErrorMap().get(-errno)?.[1] ?? `errno ${errno}`
