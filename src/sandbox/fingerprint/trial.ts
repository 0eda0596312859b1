// Builds one minimal sandbox with every privileged step of a launch, and starts a program of ours in it: it works or it does not.
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { silent } from '../../lib/logger.ts'
import { isShortage } from '../../lib/missing.ts'
import { initCommand } from '../bubblewrap/argv.ts'
import { confine, type BubblewrapPlan } from '../bubblewrap/driver.ts'
import { presentProcMasks } from '../bubblewrap/masks.ts'
import { planBubblewrap } from '../bubblewrap/plan.ts'
import { readKernelFacts } from './kernel-facts.ts'
import { innerLimits, limitsWithRelay, type OuterLimits } from '../limits/limits.ts'
import { planNetwork } from '../network.ts'
import { compileSeccomp } from '../seccomp.ts'
import { openTrialDoor } from './trial-door.ts'
import type { SandboxSpec } from '../spec.ts'

/** How a trial ended; `stderr` is what launcher, bubblewrap and init had to say. */
export type Trial =
  | {
      readonly works: true
      readonly tookMs: number
      /** Exit status of what ran in it */
      readonly status: number | null
    }
  | {
      readonly works: false
      readonly message: string
      readonly stderr: string
      /** It took too long, or the machine was short of something, so that nobody knows whether it would have worked */
      readonly isUnsettled?: true
      /** What says so, where the machine was short of something */
      readonly shortage?: SallyportError
    }

/** Under whom the trial runs where the daemon is root: nobody, who owns nothing. */
const nobody = 65_534
const trialMs = 5_000

const grant = { port: 443, address: null, private: false, tls: true, reason: 'a trial' } as const
const trialGrants = ['trial.invalid', '*.trial.invalid'].map((host) => ({ ...grant, host }))

/** Tries once. Never throws: that it does not work is what it was asked for. Nothing is left of it either way. */
export async function tryOnce(tool: string, launcher: string): Promise<Trial> {
  // A personality that does not exist: it is executed, says so, and ends
  return attempt((isRoot) => trialPlan(tool, launcher, trialSpec(isRoot, 'trial')))
}

/**
 * The same with a network that is an allowlist: a door of its own, one name, and a wildcard. Status 0 means that a datagram
 * which leads nowhere fails where it is sent.
 */
export async function tryEgress(tool: string, launcher: string): Promise<Trial> {
  const opened = await openTrialDoor().catch((thrown: unknown) => SallyportError.from(thrown))
  if (opened instanceof SallyportError) return failed(opened)
  await using door = opened
  return await attempt(async (isRoot) => {
    const spec = trialSpec(isRoot, 'nowhere')
    const user = { uid: spec.hostUid, gid: spec.hostGid, isSelf: !isRoot }
    const network = await planNetwork(
      { name: spec.server, egress: trialGrants },
      () => door.openFor(user.uid),
      user,
    )
    return trialPlan(tool, launcher, { ...spec, network })
  })
}

async function attempt(planFor: (isRoot: boolean) => Promise<BubblewrapPlan>): Promise<Trial> {
  const startedAt = performance.now()
  const signal = AbortSignal.timeout(trialMs)
  try {
    const gate = await confine(await planFor(process.geteuid?.() === 0), { signal })
    await using server = await gate.open({ signal })
    server.stdin.end()
    const { code } = await within(server.ended, trialMs, endless)
    return { works: true, tookMs: performance.now() - startedAt, status: code }
  } catch (thrown) {
    return failed(SallyportError.from(thrown), signal.aborted)
  }
}

function failed(error: SallyportError, isLate = false): Trial {
  const { message, details } = error
  const isShort = isShortage(error)
  const isUnsettled = isShort || isLate || details['timeoutMs'] !== undefined
  return {
    works: false,
    message,
    stderr: String(details['stderr'] ?? ''),
    ...(isUnsettled && { isUnsettled }),
    ...(isShort && { shortage: error }),
  }
}

const endless = (): SallyportError =>
  new SallyportError(
    'ERR_SANDBOX_SETUP',
    `the trial's sandbox is still there ${trialMs} ms after its program was started; see whether sallyport-init is the one that was installed, and the machine is overloaded`,
    { step: 'gate', timeoutMs: trialMs },
  )

async function trialPlan(toolPath: string, initPath: string, spec: SandboxSpec): Promise<BubblewrapPlan> {
  const isRoot = process.geteuid?.() === 0
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
  const seccomp = compileSeccomp(spec.syscalls, arch, spec.network.mode)
  return {
    ...planBubblewrap(spec, seccomp, { initPath, toolPath, procMasks: await presentProcMasks(), isRoot }),
    outerLimits: nothingOutside,
    innerLimits: innerLimits(limitsWithRelay(spec), readKernelFacts()),
    enforcedBy: { memory: 'none', pids: 'rlimit', cpu: 'none', files: 'rlimit', tmp: 'tmpfs' },
    secrets: () => ({ environment: {}, files: [] }),
    log: silent,
  }
}

function trialSpec(isRoot: boolean, personality: string): SandboxSpec {
  const [init] = initCommand
  return {
    server: 'trial',
    instance: newInstanceId(),
    profile: 'offline',
    program: { path: init, argv: [init, personality] },
    cwd: '/',
    environment: {},
    hostUid: isRoot ? nobody : (process.geteuid?.() ?? -1),
    hostGid: isRoot ? nobody : (process.getegid?.() ?? -1),
    mounts: [],
    links: [],
    files: [],
    network: { mode: 'none' },
    hasCredentialFiles: false,
    exec: 'any',
    syscalls: { base: 'strict', allow: [], deny: [] },
    stop: { eofMs: 100, termMs: 100 },
    limits: {
      memoryBytes: 64 * 2 ** 20,
      pids: 8,
      cpu: 1,
      openFiles: 64,
      fileBytes: 2 ** 20,
      tmpBytes: 2 ** 20,
      enforcement: { memory: 'best-effort', cpu: 'best-effort', pids: 'best-effort', files: 'required' },
    },
  }
}

const nothingOutside: OuterLimits = {
  joinFiles: [],
  watch() {},
  hasRunOut: () => false,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}
