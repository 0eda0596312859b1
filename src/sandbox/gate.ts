// The gate of every sandbox, whatever built it: init proves what it stands in, is told what to start, and starts it.
import { release } from 'node:os'
import { getSystemErrorMap } from 'node:util'
import { enough, SallyportError } from '../errors.ts'
import { within } from '../lib/deadline.ts'
import { isShortage } from '../lib/missing.ts'
import type { SecretFile } from '../schema/credentials.ts'
import type { ControlChannel } from './control/channel.ts'
import type { Order, Report, TargetReport } from './control/control.ts'
import type { SandboxExit, SandboxProcess } from './driver.ts'
import type { InnerLimit } from './limits/limits.ts'
import { compileWatched } from './seccomp.ts'
import { credentialFolder, doorTarget, mountsOf, type SandboxSpec } from './spec.ts'

/** How long init, and what builds its sandbox, may take until it reports, ms. */
const setupMs = 20_000

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

/** What a gate needs of a launch's plan. */
export interface GatePlan {
  readonly spec: SandboxSpec
  /** What init sets for the server, from inside */
  readonly innerLimits: readonly InnerLimit[]
  /** Asked once, when the gate opens: a sandbox may wait there before it is known whose call it is for */
  readonly secrets: () => GateSecrets
}

/** A sandbox with init in it, as its driver holds it. */
export interface HeldSandbox extends AsyncDisposable {
  readonly channel: ControlChannel
  /** The error for a sandbox that ended before its server started */
  setupFailure(): Promise<SallyportError>
  /** Hands the running server over, and watches it from now on */
  follow(): SandboxProcess
}

/** A sandbox that stands, with nothing of the server in it yet. Disposing it ends it. */
export interface GatedSandbox extends AsyncDisposable {
  /** Host pid of the sandbox's PID 1; 0 where nobody here knows it */
  readonly initPid: number
  /** Resolves once nothing is left, whoever ended it; never rejects */
  readonly ended: Promise<SandboxExit>
  /** Whether it is known by now that no process of it is left, however long the proof takes */
  readonly isLost: () => boolean
  /** Whether its PID 1 stands still, by a signal or since its container is paused, and would open no gate until it is let go on */
  readonly isStopped: () => boolean
  /** Starts the server. Throws ERR_SANDBOX_EXEC where its program cannot be executed; all has ended then */
  open(waiting: { readonly signal: AbortSignal }): Promise<SandboxProcess>
}

/** What a driver has init do before it reports, and how it is seen to be done. */
export interface GateProof {
  readonly orders: readonly Order[]
  /** Paths of the sandbox to report on */
  readonly targets: readonly string[]
  /** Throws ERR_SANDBOX_SETUP where it was not done, by what was found at these */
  require(found: readonly TargetReport[]): void
}

/**
 * Waits for init's report, and for the proof that every mount is what the plan opened: by init's own word, or where another
 * kernel than this one numbers the files in there, by `look`; and for that of the driver. Throws ERR_SANDBOX_SETUP, or
 * ERR_SHORTAGE where the machine has not enough for it.
 */
export const reachGate = async (
  sandbox: HeldSandbox,
  spec: SandboxSpec,
  {
    signal,
    look = null,
    proof = null,
  }: {
    readonly signal: AbortSignal
    readonly look?: (() => Promise<void>) | null
    readonly proof?: GateProof | null
  },
): Promise<void> => {
  sandbox.channel.send(...gateOrders(spec, proof))
  const { targets } = await expectReport(sandbox, spec, 'ready', signal)
  const mounted = mountsOf(spec).length
  requireSameTargets(spec, targets.slice(0, mounted), look === null)
  proof?.require(targets.slice(mounted))
  await look?.()
}

/** Says go. Whatever fails, the sandbox is gone then. */
export const openGate = async (
  sandbox: HeldSandbox,
  plan: GatePlan,
  { signal }: { readonly signal: AbortSignal },
): Promise<SandboxProcess> => {
  try {
    signal.throwIfAborted()
    sandbox.channel.send(...goOrders(plan, plan.secrets()))
    await expectReport(sandbox, plan.spec, 'started', signal)
  } catch (error) {
    await sandbox[Symbol.asyncDispose]()
    throw error
  }
  return sandbox.follow()
}

/** Whether a gate was not opened because the relay of its network was gone: init looks before it forks, so nothing of the server ran. */
export const hasNoRelay = (error: unknown): boolean =>
  error instanceof SallyportError && error.details['at'] === egressStep

/** Whether another file stood where one that was judged was to be mounted; nothing of the server ran. */
export const wasReplaced = (error: unknown): error is SallyportError =>
  error instanceof SallyportError && error.details['step'] === 'gate' && 'source' in error.details

/** How a server ended, as init tells it: what init did not live to tell is `sandbox-lost`. Throws where it breaks its channel. */
export const awaitExit = async (channel: ControlChannel): Promise<SandboxExit | null> => {
  const report = await channel.next()
  if (report === null) return null
  if (report.type === 'exited') {
    const { code, signal } = report
    const exit = signal === 0 ? { code, signal: null } : { code: null, signal }
    return { ...exit, reason: 'exited' }
  }
  const nothing = { code: null, signal: null }
  if (report.type !== 'failed') return { ...nothing, reason: 'sandbox-lost' }
  return { ...nothing, reason: report.step === egressStep ? 'egress-lost' : 'exec-failed' }
}

/** The step that init names when the relay of the network is gone. */
const egressStep = 'egress'

const gateOrders = (spec: SandboxSpec, proof: GateProof | null): Order[] => [
  ...[...mountsOf(spec).map(({ target }) => target), ...(proof?.targets ?? [])].map((path): Order => ({
    type: 'target',
    path,
  })),
  ...(proof?.orders ?? []),
  ...egressOrders(spec),
  { type: 'report' },
]

const arch = process.arch === 'arm64' ? 'arm64' : 'x64'

/** Whether who listens to system calls can let one go on: since Linux 5.5. */
const letsCallsGoOn = (): boolean => {
  const [major = 0, minor = 0] = release().split('.').map(Number)
  return major > 5 || (major === 5 && minor >= 5)
}

const egressOrders = ({ network, syscalls }: SandboxSpec): Order[] =>
  network.mode === 'none'
    ? []
    : [
        { type: 'door', path: doorTarget, proxyPort: network.proxyPort, pool: network.pool },
        { type: 'watched', filter: compileWatched(syscalls, arch, letsCallsGoOn()) },
        ...network.grants.map(({ host, port }): Order => ({ type: 'name', host, port })),
      ]

const goOrders = ({ spec, innerLimits }: GatePlan, secrets: GateSecrets): Order[] => [
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
  sandbox: HeldSandbox,
  spec: SandboxSpec,
  type: T,
  signal: AbortSignal,
): Promise<Extract<Report, { type: T }>> => {
  const report = await within(sandbox.channel.next(), setupMs, () => tooLate(type), signal)
  const isExpected = (report: Report): report is Extract<Report, { type: T }> => report.type === type
  if (report === null) throw await sandbox.setupFailure()
  if (isExpected(report)) return report
  if (report.type === 'failed') throw startFailed(spec, report)
  throw new SallyportError('ERR_SANDBOX_SETUP', `init reported ${report.type} where ${type} was due`, {
    step: 'gate',
  })
}

// A source that was swapped between the plan and the mount shows here: the sandbox has then another file than was judged.
const requireSameTargets = (
  spec: SandboxSpec,
  found: readonly TargetReport[],
  hasSameNumbers: boolean,
): void => {
  const { server } = spec
  const mounts = mountsOf(spec)
  for (const [index, mount] of mounts.entries()) {
    const inside = found[index]
    if (inside !== undefined && inside.errno === 0 && !hasSameNumbers) continue
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

const execMends: ReadonlyMap<number, string> = new Map([
  [2, 'see that profile, mounts or image hold it, and the interpreter or loader that it names'],
  [8, 'name a program for this machine’s architecture, or a script that says its interpreter'],
  [13, 'see that its mode, and that of every folder on the way to it, lets others use it'],
  [40, 'see that the interpreter which it names is no script that names it again'],
])

const startFailed = (
  { server, program }: SandboxSpec,
  { errno, step, object }: Extract<Report, { type: 'failed' }>,
): SallyportError => {
  const [name, words] = getSystemErrorMap().get(-errno) ?? ['', `errno ${errno}`]
  const what = `${step}: ${object}: ${words}`
  const details = { step: 'gate', server, program: program.path, at: step, object, errno }
  const cause = Object.assign(new Error(what), { code: name })
  if (isShortage(cause))
    return new SallyportError(
      'ERR_SHORTAGE',
      `${program.path} of ${server} could not be started in its sandbox: ${what}; ${enough}`,
      details,
      { cause },
    )
  return programSteps.has(step)
    ? new SallyportError(
        'ERR_SANDBOX_EXEC',
        `${program.path} of ${server} could not be started in its sandbox: ${what}; ${execMends.get(errno) ?? 'see that profile and mounts hold all that it needs'}`,
        details,
      )
    : new SallyportError(
        'ERR_SANDBOX_SETUP',
        `init could not finish the sandbox of ${server}: ${what}; run sallyport doctor to see what this machine lacks`,
        details,
      )
}
