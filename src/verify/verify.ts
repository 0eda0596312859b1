// A verification: the battery in the very sandbox of a profile's or a server's launches, outside, and with controls taken out.
//
//   plant canaries ─> a neighbour starts ─> inside ∥ outside ─> what takes all, alone ─> arms ─> verdicts
import { arch, release } from 'node:os'
import type { Host } from '../config/host.ts'
import { SallyportError } from '../errors.ts'
import { type DaemonId, newDaemonId } from '../lib/ids.ts'
import { type Logger, silent } from '../lib/logger.ts'
import { parentDirectories } from '../sandbox/cgroup/cgroup.ts'
import { hostFingerprint } from '../sandbox/fingerprint/fingerprint.ts'
import { createLaunchHost, type LaunchHost } from '../sandbox/host.ts'
import { pinFileOnce } from '../sandbox/program/pinned-file.ts'
import { tlsPorts } from '../schema/egress.ts'
import type { Settings } from '../schema/settings.ts'
import type { StatedAssertion } from '../schema/assertion.ts'
import { tryAssertions } from './stated/assertions.ts'
import { type Canaries, plantCanaries } from './lab/canaries.ts'
import { catalogue } from './catalogue.ts'
import { tryArms } from './arms/arms.ts'
import type { ControlId } from './arms/controls.ts'
import { exposureOf } from './arms/exposure.ts'
import { makeExhibit } from './lab/exhibit.ts'
import { foreignCallsOf } from './lab/foreign-calls.ts'
import { inGvisor } from './gvisor/gvisor.ts'
import { judge } from './judge.ts'
import { answersInside, answersOutside, type Planned } from './lab/inside.ts'
import { startJanitor } from './lab/janitor.ts'
import { planOf } from './lab/try.ts'
import { chooseListeners, startNeighbour } from './lab/neighbour.ts'
import { StuckError, takeDownMs, unlessStuck } from './lab/patience.ts'
import { openWayOut } from './lab/way-out.ts'
import { overall, type ProbeResult, type Verification } from './result.ts'
import type { NamedCall } from './server/choose-call.ts'
import { labOf, sceneOf } from './scene.ts'
import { inspectServer, type RunServer } from './server/inspect-server.ts'
import { type Subject, subjectOfProfile, subjectOfServer } from './subject.ts'
import { type Found, lateError, nothingFound, notShown, notTried } from './unfinished.ts'

export interface VerifyOptions {
  readonly host: Host
  /** Folder whose profiles are found beside the shipped ones; the user's own where it is left out */
  readonly directory?: string
  /** Takes each control out in turn, and holds every probe to going red */
  readonly selfCheck?: boolean
  /** Takes what nothing here holds as a failure, though the profile asks for best effort */
  readonly strict?: boolean
  /** Tries only the probes that guard these controls; all of them where it is left out */
  readonly controls?: readonly ControlId[]
  /** What makes the sandbox of a profile; a server's entry says it itself */
  readonly driver?: 'bubblewrap' | 'docker'
  /** The engine's OCI runtime, where not its own choice */
  readonly runtime?: string
  /** What must hold beside what the profile itself states */
  readonly assertions?: readonly StatedAssertion[]
  readonly log?: Logger
  readonly signal?: AbortSignal
  /** How long a try of all of it may take, ms; what is not done then was not tried */
  readonly patienceMs?: number
  /** Leaves it at the first try, whatever that has not shown */
  readonly isTriedOnce?: boolean
  /** How long what is left may take to end from then on, ms; whoever is told that it did not ends this process */
  readonly graceMs?: number
  /** Called before each stage, in people's words */
  readonly onProgress?: (stage: string) => void
}

export interface ServerOptions extends Omit<VerifyOptions, 'directory'> {
  readonly settings: Settings
  /** Files and folders of Sallyport's own, which no server may have */
  readonly own: readonly string[]
  /** Starts the server itself, through the launch and the policy of any */
  readonly run: RunServer
  /** What is called of the server; where nothing is said, what is known to change nothing */
  readonly call: NamedCall | null
}

const usualPatienceMs = 600_000

/**
 * Verifies a profile by itself, without a server, and returns what was found. Nothing of it is left on the host. Where something could
 * not be shown, and nothing was seen to fail, all of it is tried once more.
 *
 * Throws a `SallyportError` where there is no such profile, or the signal's reason; whatever else goes wrong is a verdict.
 */
export const verifyProfile = async (profile: string, options: VerifyOptions): Promise<Verification> =>
  verifySubject(await subjectOfProfile(profile, options), options, null)

/**
 * Verifies a server: the battery with what its entry gives it, then the server itself, run and looked at from outside.
 *
 * Throws ERR_SERVER_NOT_FOUND or ERR_SERVER_DISABLED, or the signal's reason; whatever else goes wrong is a verdict.
 */
export const verifyServer = async (name: string, options: ServerOptions): Promise<Verification> =>
  verifySubject(subjectOfServer(options.settings, name), options, options)

const verifySubject = async (
  subject: Subject,
  options: VerifyOptions,
  real: ServerOptions | null,
): Promise<Verification> => {
  const { host } = options
  const [startedAt, from] = [new Date().toISOString(), performance.now()]
  const { patienceMs = usualPatienceMs } = options
  const first = await tryInTime(subject, options, real, patienceMs)
  const lacking = notShown(first)
  // A server is not called once more for it, nor is there a second try where the first has had all the time.
  const mayTryAgain = real === null && options.isTriedOnce !== true && performance.now() - from < patienceMs
  const isAgain = lacking !== null && mayTryAgain
  if (isAgain) options.onProgress?.(`once more, since not all was shown: ${lacking}`)
  const found = isAgain ? await tryInTime(subject, options, real, patienceMs) : first
  const { probes, inspections, assertions, enforcedBy } = found
  return {
    profile: subject.profile.name,
    server: subject.isReal ? subject.server.name : null,
    driver: subject.server.driver,
    runtime: subject.server.runtime,
    host: {
      kernel: release(),
      arch: arch(),
      uid: host.uid,
      tool: (await hostFingerprint()).bubblewrap?.version ?? null,
    },
    startedAt,
    durationMs: performance.now() - from,
    earlier: isAgain ? [lacking] : [],
    probes,
    inspections,
    assertions,
    enforcedBy,
    verdict: probes.length === 0 ? 'error' : overall([...probes, ...inspections, ...assertions]),
  }
}

const tryInTime = async (
  subject: Subject,
  options: VerifyOptions,
  real: ServerOptions | null,
  patienceMs: number,
): Promise<Found> => {
  const late = AbortSignal.timeout(patienceMs)
  const signal = AbortSignal.any([options.signal ?? [], late].flat())
  let stage = 'the beginning'
  const onProgress = (next: string): void => {
    stage = next
    options.onProgress?.(next)
  }
  const work = tryAll(subject, { ...options, signal, onProgress }, real)
  return unlessStuck(work, signal, options.graceMs ?? takeDownMs).catch((error: unknown): Found => {
    options.signal?.throwIfAborted()
    const why = late.aborted ? lateError(stage, { patienceMs, isStuck: error instanceof StuckError }) : error
    return { ...nothingFound, inspections: [notTried(SallyportError.from(why))] }
  })
}

const tryAll = async (
  subject: Subject,
  options: VerifyOptions & { readonly signal: AbortSignal },
  real: ServerOptions | null,
): Promise<Found> => {
  const { host, selfCheck = false, signal, onProgress = () => undefined } = options
  const { settings, server: plain, profile } = subject
  onProgress('planting what a server must not find')
  await using janitor = await startJanitor()
  await using planted = await plantCanaries(host.home, janitor)
  const { canaries } = planted
  await using exhibit = await makeExhibit(janitor)
  await using wayOut = await openWayOut(canaries, signal)
  const daemon = newDaemonId()
  for (const group of parentDirectories((await hostFingerprint()).cgroups, daemon))
    await janitor.takes(`group /${group.slice(1)}`)
  await using launchHost = await launchHostFor(daemon, canaries, options, subject, real)
  const grounds = { host: launchHost, canaries, exhibit, wayOut }
  const lab = await labOf(subject, grounds, planted.program, signal)
  const confined = await planOf(lab)
  const { spec, enforcedBy, kernel } = confined
  await using neighbour = await startNeighbour(lab, await chooseListeners(kernel))
  const exposure = await exposureOf(planted.program, canaries)
  const foreign = await foreignCallsOf(lab)
  const scene = await sceneOf(subject, confined, grounds, { exposure, neighbour, foreign })
  const planned = catalogue
    .filter(({ control }) => options.controls?.includes(control) ?? true)
    .map((probe): Planned => ({ probe, trial: probe.trial(scene) }))
    .map((it) => (kernel === 'gvisor' ? inGvisor(it, scene) : it))
  onProgress('inside and outside')
  const [inside, outside] = await Promise.all([
    answersInside(lab, planned, exposure),
    answersOutside(lab, planned),
  ])
  onProgress(selfCheck ? 'without each control' : 'without the controls that are not to be seen open outside')
  const arms = await tryArms(lab, exposure, planned, { inside, outside, selfCheck, listeners: neighbour })
  const probes = planned.map(({ probe, trial }): ProbeResult => {
    return judge({
      probe,
      trial,
      inside: inside.get(probe) ?? [],
      outside: outside.get(probe) ?? [],
      arm: arms.get(probe) ?? null,
      isSelfCheck: selfCheck,
      isStrict: options.strict === true,
      spec,
      driver: plain.driver,
    })
  })
  if (real !== null) onProgress('the server itself')
  const seen = real === null ? null : await inspectServer(subject, real, { canaries, kernel, signal })
  onProgress('what is stated')
  const stated = [...profile.assertions, ...(options.assertions ?? [])]
  const assertions = await tryAssertions(lab, stated, {
    wayOut,
    kernel,
    grants: subject.isReal
      ? plain.egress
      : profile.network.allow.map((grant) => ({ ...grant, tls: tlsPorts.has(grant.port) })),
    calls: seen === null ? null : { settings, server: plain, profile, listed: seen.listed },
  })
  return { probes, inspections: seen?.inspections ?? [], assertions, enforcedBy }
}

/** Each control is tried under configs of their own, and their programs are the same few files. */
const pinFile = pinFileOnce()

const launchHostFor = (
  daemon: DaemonId,
  canaries: Canaries,
  { host, log = silent }: VerifyOptions,
  { server }: Subject,
  real: ServerOptions | null,
): Promise<LaunchHost> =>
  createLaunchHost({
    daemon,
    stateDirectory: canaries.state,
    own: [canaries.state, canaries.own, ...(real?.own ?? [])],
    homes: [host.home],
    environment: { ...host.env, ...canaries.variables },
    drivers: [server.driver],
    pinFile,
    log,
  })
