// A launch: from a server's settings to a confined server behind an open gate. The order is the design.
import { isDeepStrictEqual } from 'node:util'
import { SallyportError } from '../errors.ts'
import { unlessAborted } from '../lib/deadline.ts'
import type { InstanceId } from '../lib/ids.ts'
import { proxyVariables } from '../lib/own-variables.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'
import { type BubblewrapPlan, confine } from './bubblewrap/driver.ts'
import { planBubblewrap } from './bubblewrap/plan.ts'
import { confineInContainer, type DockerPlan } from './docker/driver.ts'
import { engineEnforcement, withMountedLinks } from './docker/host.ts'
import type { SandboxProcess } from './driver.ts'
import { requireEgress, requireSandbox } from './fingerprint/diagnose.ts'
import { withUnsettledTried } from './fingerprint/fingerprint.ts'
import { chooseEnforcement } from './limits/enforcement.ts'
import { buildEnvironment } from './environment.ts'
import { planFilesystem } from './mounts/filesystem.ts'
import type { GatedSandbox, GateSecrets } from './gate.ts'
import type { LaunchHost } from './host.ts'
import { innerLimits, limitsWithRelay } from './limits/limits.ts'
import { type OpenDoor, planNetwork } from './network.ts'
import { holdFromOutside } from './limits/outer-limits.ts'
import type { Registration } from './registrations.ts'
import { resolveServer, settleSpec } from './resolve.ts'
import type { DataFile, SandboxSpec } from './spec.ts'

/** The steps in their order; docs/lifecycle.md has them in the same words. The last one is the supervisor's. */
export const launchSteps = [
  'fingerprint',
  'resolve',
  'scrub',
  'plan',
  'confine',
  'limit',
  'gate',
  'handshake',
] as const

/** What is to be launched. */
export interface LaunchRequest {
  readonly server: ServerSettings
  readonly profile: ProfileSettings
  readonly settings: Settings
  readonly instance: InstanceId
  readonly supply: LaunchSupply
}

/** What the supervisor adds to a sandbox of its own accord; whoever made it owns it, and takes it back after any failure. */
export interface LaunchSupply {
  /** Opens the way out for the host user under which the sandbox will run, and returns its socket; null without a network */
  readonly openDoor: OpenDoor | null
  /** Variables of the supervisor's: placeholders, and where certificates are */
  readonly variables: Readonly<Record<string, string>>
  readonly files: readonly DataFile[]
  /** Whether there will be secret files among these */
  readonly hasSecretFiles: boolean
  /** What goes through the gate and nowhere else, asked for when it opens: in no plan, no record and no argument */
  readonly secrets: () => GateSecrets
}

/** Nothing: a sandbox without a network and without credentials. */
export const noSupply: LaunchSupply = {
  openDoor: null,
  variables: {},
  files: [],
  hasSecretFiles: false,
  secrets: () => ({ environment: {}, files: [] }),
}

/** A launch with nothing left to decide, for the driver that it names. */
export type LaunchPlan = BubblewrapPlan | DockerPlan

/** What waits for a launch. */
export interface LaunchWaiting {
  readonly signal: AbortSignal
  /** Called where the sandbox stands and nothing of the server has run; a rejection ends the launch, and nothing ran */
  readonly atGate?: (spec: SandboxSpec, initPid: number) => Promise<void>
}

/**
 * Launches a server and returns it running, confined as its profile says. Each step can only refuse; none degrades silently.
 *
 * `registered` is called when the files were read and are the registered ones; what comes after takes milliseconds.
 * Every failure is a `SallyportError`, but an abort, which throws the signal's reason. Nothing of the server ran where a
 * step before the gate failed, and nothing of the sandbox is left after any failure.
 */
export const launch = async (
  request: LaunchRequest,
  host: LaunchHost,
  waiting: LaunchWaiting & { readonly registered?: () => void },
): Promise<SandboxProcess> => openLaunch(await planLaunch(request, host, waiting), host, waiting)

/**
 * Everything of a launch before its first process: the plan, with nothing left to decide, and limits held for it.
 *
 * Whoever has it must pass it on to `openLaunch`, which owns it from then on. Throws as `launch` does.
 */
export const planLaunch = async (
  request: LaunchRequest,
  host: LaunchHost,
  { signal, registered }: { readonly signal: AbortSignal; readonly registered?: () => void },
): Promise<LaunchPlan> => {
  signal.throwIfAborted()
  const { server, profile, instance, supply } = request

  // 1. fingerprint: a real sandbox was tried when the daemon started; where it failed, the missing control is named. Where a
  //    trial was only late, or short of something, it is made anew. In a container the engine has the say, and init tries the way out itself before anything of the server runs.
  const docker = server.driver === 'docker' ? await unlessAborted(host.docker(), signal) : null
  const hasEgress = profile.network.mode === 'allowlist'
  const found =
    docker === null
      ? await unlessAborted(withUnsettledTried(host.fingerprint, hasEgress), signal)
      : host.fingerprint
  if (docker === null) {
    requireSandbox(found)
    if (hasEgress) requireEgress(found)
  }
  refuseOtherNetwork(server, profile, supply)

  // 2. to 4. resolve, scrub and plan: what stands on this machine now.
  const { spec, registration } = await settle(request, host, { signal, registered, like: null })

  // 5. confine: never as root, not even bubblewrap; own namespaces, no capabilities, a default-deny filter.
  refuseRoot(spec)
  const seccomp = host.seccompOf(spec.syscalls, spec.network.mode)

  // 6. limit: from outside before the sandbox's first process is there, from inside before the server is.
  const limits = limitsWithRelay(spec)
  const inner = { innerLimits: innerLimits(limits, host.limits), secrets: supply.secrets, log: host.log }
  if (docker !== null) {
    const enforcedBy = engineEnforcement(limits, docker.info)
    return docker.plan(
      { ...inner, spec, filter: seccomp, enforcedBy },
      { runtime: server.runtime, image: registration.image },
      { signal },
    )
  }
  const enforcedBy = chooseEnforcement(limits, host.limits)
  const planned = { ...planBubblewrap(spec, seccomp, host.tools(found)), ...inner, enforcedBy }
  // Last, since nobody would take them down where something after it failed.
  return { ...planned, outerLimits: holdFromOutside(host.cgroups, { instance, limits }, enforcedBy) }
}

/** The last step: builds what the plan says and lets the server start in it. Throws as `launch` does. */
export const openLaunch = async (
  plan: LaunchPlan,
  host: LaunchHost,
  { signal, atGate }: LaunchWaiting,
): Promise<SandboxProcess> => {
  const gate = await reachGateOf(plan, host, { signal })
  try {
    await atGate?.(plan.spec, gate.initPid)
  } catch (error) {
    await gate[Symbol.asyncDispose]()
    throw error
  }
  return gate.open({ signal })
}

/** A sandbox that was built before it is known for what: it waits at its gate, and nothing of the server has run. */
export interface WarmSandbox extends GatedSandbox {
  readonly spec: SandboxSpec
  /**
   * Whether a launch of these settings would be planned now as this one was, from the files that are executed to the last
   * mount. Throws what such a launch would.
   */
  fits(
    now: Pick<LaunchRequest, 'server' | 'profile' | 'settings'>,
    waiting: { readonly signal: AbortSignal },
  ): Promise<boolean>
}

/** The same launch, up to its gate. Whoever has it opens it, once, or disposes of it. Throws as `launch` does. */
export const launchToGate = async (
  request: LaunchRequest,
  host: LaunchHost,
  { signal }: { readonly signal: AbortSignal },
): Promise<WarmSandbox> => {
  const plan = await planLaunch(request, host, { signal })
  const gate = await reachGateOf(plan, host, { signal })
  const { server, profile } = request
  return {
    ...gate,
    spec: plan.spec,
    // Taken out, not spread: the signal of who waits in a session is a getter of its class, which a spread leaves behind.
    async fits(now, { signal }) {
      if (!isDeepStrictEqual([now.server, now.profile], [server, profile])) return false
      const { spec } = await settle({ ...request, ...now }, host, { signal, like: plan.spec })
      return isDeepStrictEqual(spec, plan.spec)
    },
  }
}

// 7. gate: the sandbox stands, each of its mounts is the file that was judged, nothing of the server has run; then go.
//    From here the driver owns the outer limits, and takes everything down when something fails.
const reachGateOf = async (
  plan: LaunchPlan,
  host: LaunchHost,
  { signal }: { readonly signal: AbortSignal },
): Promise<GatedSandbox> => {
  const gate = await (plan.driver === 'docker'
    ? confineInContainer(plan, { signal })
    : confine(plan, { signal, start: (path) => host.launchers.take(path) }).finally(() => {
        // The next launcher, when the server has been told to go: to fork the daemon while a sandbox is built makes that one wait.
        host.launchers.prepare()
      }))
  if (host.facts.uid === 0) host.holdUid(plan.spec.hostUid, gate.ended)
  return gate
}

/** Steps 2 to 4. `like` is a sandbox that stands, to be planned again: user and way out are its own then. */
const settle = async (
  { server, profile, settings, instance, supply }: LaunchRequest,
  host: LaunchHost,
  {
    signal,
    registered,
    like,
  }: {
    readonly signal: AbortSignal
    readonly registered?: (() => void) | undefined
    readonly like: SandboxSpec | null
  },
): Promise<{ readonly spec: SandboxSpec; readonly registration: Registration }> => {
  // 2. resolve: the files that will run are the registered ones, the arguments start no other code, the user is not root.
  const registration = await unlessAborted(host.registrationsOf(settings).verified(server), signal)
  registered?.()
  const chosen = resolveServer({ server, profile, settings, instance, registration }, host.facts)
  const resolved =
    like === null ? chosen : { ...chosen, user: { ...chosen.user, uid: like.hostUid, gid: like.hostGid } }

  // 3. scrub: the environment is built from empty; of the daemon's own only what the profile passes is read.
  const { variables } = supply
  const environment = buildEnvironment({
    server,
    profile,
    daemon: host.facts.environment,
    supplied: supply.openDoor === null ? variables : { ...proxyVariables, ...variables },
  })
  for (const override of like === null ? environment.overrides : [])
    host.log.warn({ server: server.name, instance, ...override }, 'variable of a refused family let through')

  // 4. plan: the mounts are judged where they really lead, and none is at, above or inside a denied path; the door is made
  //    for the sandbox's own user; the spec is frozen.
  const filesystem = await planFilesystem(resolved, host.facts)
  const spec = await settleSpec(resolved, environment.variables, filesystem, {
    network: like?.network ?? (await planNetwork(server, supply.openDoor, resolved.user)),
    files: supply.files,
    hasCredentialFiles: supply.hasSecretFiles,
  })
  return { spec: server.driver === 'docker' ? await withMountedLinks(spec) : spec, registration }
}

// Whoever composes gives a way out exactly where the profile has one: neither is ever guessed from the other.
const refuseOtherNetwork = (
  server: ServerSettings,
  profile: ProfileSettings,
  { openDoor }: LaunchSupply,
): void => {
  const { mode } = profile.network
  if ((mode === 'allowlist') === (openDoor !== null)) return
  throw new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `server ${server.name} was launched ${openDoor === null ? 'without' : 'with'} a way out, and profile ${profile.name} says network.mode: ${mode}; choose a profile whose network is what the server needs`,
    { server: server.name, profile: profile.name, control: 'network.mode' },
  )
}

// A process of host uid 0 could write /proc/sys/kernel/core_pattern whatever namespaces and capabilities it has.
const refuseRoot = ({ server, hostUid, hostGid }: SandboxSpec): void => {
  if (hostUid > 0 && hostGid > 0) return
  throw new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `the sandbox of ${server} would run as uid ${hostUid} and gid ${hostGid}; set run_as to an ordinary user`,
    { server, control: 'run_as', uid: hostUid, gid: hostGid },
  )
}
