// What the supervisor launches on: this machine, with what was registered for each server and what one daemon owns.
import { join } from 'node:path'
import { enterpriseFolder, userFolder } from '../../config/find.ts'
import type { Host } from '../../config/host.ts'
import { SallyportError } from '../../errors.ts'
import { unlessAborted } from '../../lib/deadline.ts'
import { proxyVariables } from '../../lib/own-variables.ts'
import type { DaemonId } from '../../lib/ids.ts'
import type { Logger } from '../../lib/logger.ts'
import { buildEnvironment } from '../../sandbox/environment.ts'
import type { EnforcedLimits, SandboxProcess } from '../../sandbox/driver.ts'
import { hasNoRelay, wasReplaced } from '../../sandbox/gate.ts'
import { createLaunchHost } from '../../sandbox/host.ts'
import type { LaunchHost } from '../../sandbox/host.ts'
import { launch, launchToGate, type LaunchSupply, noSupply, type WarmSandbox } from '../../sandbox/launch.ts'
import { bestEnforcement } from '../../sandbox/limits/enforcement.ts'
import { pinFileKept } from '../../sandbox/program/known-programs.ts'
import { pinFileOnce } from '../../sandbox/program/pinned-file.ts'
import type { PinWaiting, RecordImage, Registration } from '../../sandbox/registrations.ts'
import type { Confided } from '../../credentials/confided.ts'
import type { RedactingStream } from '../../schema/credentials.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../../schema/settings.ts'
import type { Describe, Emit, Launch, Running } from '../../supervisor/ports.ts'
import { digestOfCode, digestOfOrigin } from './code.ts'
import type { Guard } from '../guard.ts'
import type { Outfit } from './outfit.ts'
import type { Outfits } from './outfits.ts'
import { Pools } from './pools.ts'

/** Whose machine it is, and what must stay out of every sandbox. */
export interface MachineOptions {
  readonly settings: Settings
  readonly daemon: DaemonId
  readonly host: Host
  readonly runtimeDir: string
  readonly stateDir: string
  readonly guard: Guard
  readonly outfits: Pick<Outfits, 'forLaunch' | 'dispose' | 'forCallToCome' | 'drawFrom'>
  readonly confided: Pick<Confided, 'stream'>
  readonly emit: Emit
  /** Whether a hold stands on the whole server */
  readonly isHeld: (server: string) => boolean
  /** Writes to the journal what the names of images led to */
  readonly recordImage: RecordImage
  readonly log: Logger
}

/** Launches and describes servers. Disposing removes the daemon's control groups; the servers must have ended. */
export interface Machine extends AsyncDisposable {
  readonly launch: Launch
  /** What waits for calls that have processes of their own */
  readonly pools: Pools
  readonly describe: Describe
  /** What holds each limit that is held from outside of a sandbox, at best */
  readonly limits: Pick<EnforcedLimits, 'memory' | 'pids' | 'cpu'>
  /** Digest over what runs as a server: its program, its package, its arguments */
  readonly codeOf: (server: ServerSettings) => string
  /** Digest of what runs, whatever the server is called; null while it is not pinned */
  readonly originOf: (server: ServerSettings) => string | null
  /** Pins what a server runs, or looks whether it is as it was pinned */
  readonly pin: (server: ServerSettings, waiting?: PinWaiting) => Promise<void>
  /** Whether what a server runs is what was pinned, or nothing was yet */
  readonly isAsPinned: (server: ServerSettings, waiting: PinWaiting) => Promise<boolean>
  /** Lets go of what was pinned for these servers */
  readonly unpin: (servers: readonly ServerSettings[]) => void
  /** Pins the command and the code of these servers where enabled, one after another, until the signal; what can't be pinned is logged */
  registerAll(servers: readonly ServerSettings[], waiting: { readonly signal: AbortSignal }): Promise<void>
}

/** Makes the control groups and names them to the guard. Throws ERR_SANDBOX_UNENFORCEABLE where the driver of a server can confine nothing. */
export async function createMachine(options: MachineOptions): Promise<Machine> {
  const { settings, daemon, host, runtimeDir, stateDir, guard, outfits, confided, emit, isHeld } = options
  const { recordImage, log } = options
  const configured = settings.sources.map(({ path }) => path)
  const launchHost = await createLaunchHost({
    daemon,
    stateDirectory: stateDir,
    own: [runtimeDir, stateDir, userFolder(host), enterpriseFolder, ...configured],
    homes: [host.home],
    environment: host.env,
    drivers: driversOf(settings),
    recordImage,
    pinFile: pinFileOnce(pinFileKept(join(stateDir, 'programs.json'), log)),
    log,
  })
  for (const directory of launchHost.cgroups.directories) guard.cleanUp(`cgroup /${directory.slice(1)}`)
  const registrations = launchHost.registrationsOf(settings)
  const pools = new Pools({
    settings,
    profileOf: (server) => profileOf(settings, server),
    outfits,
    isHeld,
    launchToGate: (request, waiting) => launchToGate(request, launchHost, waiting),
    emit,
  })
  outfits.drawFrom(pools)
  const { memory, pids, cpu } = bestEnforcement(launchHost.limits)
  return {
    pools,
    async launch(server, instance, waiting) {
      const profile = profileOf(settings, server)
      const made = await outfits.forLaunch(server, profile, instance, waiting)
      const discreet = (): RedactingStream => confided.stream(server.name, waiting.principal)
      const once = (supply: LaunchSupply): Promise<SandboxProcess> =>
        launch({ server, profile, settings, instance, supply }, launchHost, waiting)
      // As ld.so.cache is wherever a package is installed: what stands there now is judged anew, once.
      const begin = async (supply: LaunchSupply, outfit: Outfit | null): Promise<SandboxProcess> => {
        try {
          return await once(supply)
        } catch (error) {
          if (!wasReplaced(error)) throw error
          log.warn(
            { ...error.details, instance },
            'replaced while a sandbox was built around it; judged anew',
          )
          return once((await outfit?.supplyAgain(profile)) ?? noSupply)
        }
      }
      // What waits was looked at when it was drawn, as a launch of this turn would have been planned.
      const open = async (warm: WarmSandbox, outfit: Outfit): Promise<SandboxProcess> => {
        waiting.registered()
        try {
          return await warm.open(waiting)
        } catch (error) {
          if (!hasNoRelay(error)) throw error
          pools.lost(server.name, 'had no relay any more')
          return begin(await outfit.supplyAgain(profile), outfit)
        }
      }
      if (made === null) return { ...(await begin(noSupply, null)), redactor: null, discreet }
      const { outfit, warm, supply } = made
      try {
        const process = await (warm === null ? begin(supply, outfit) : open(warm, outfit))
        return { ...fitted(process, outfit, outfits), discreet }
      } catch (error) {
        await outfits.dispose(outfit)
        throw error
      }
    },
    describe: (server) => ({
      command: commandOf(server, registrations.latest(server)),
      package_digest: registrations.latest(server)?.package?.digest ?? null,
      environment: environmentOf(server, settings, launchHost),
    }),
    limits: { memory, pids, cpu },
    codeOf: (server) => digestOfCode(server, registrations.latest(server)),
    originOf: (server) => digestOfOrigin(server, registrations.latest(server)),
    pin: async (...asked) => void (await registrations.verified(...asked)),
    isAsPinned: async (server, waiting) =>
      registrations.latest(server) === null ||
      registrations.verified(server, waiting).then(
        () => true,
        () => false,
      ),
    unpin: (servers) => registrations.forget(servers),
    async registerAll(servers, { signal }) {
      for (const server of servers) {
        if (signal.aborted) return
        if (!server.enabled || server.unenforceable.length > 0) continue
        const pinned = registrations.verified(server, { isOneOfMany: true, signal })
        await unlessAborted(pinned, signal).catch((error: unknown) => {
          if (signal.aborted) return
          const { code, message } = SallyportError.from(error)
          log.warn({ server: server.name, code, reason: message }, 'server can not be registered')
        })
      }
    },
    async [Symbol.asyncDispose]() {
      await pools[Symbol.asyncDispose]()
      await launchHost[Symbol.asyncDispose]()
    },
  }
}

/** What confines the servers that may run; where there are none yet, what will confine the first. */
function driversOf({ servers, driver }: Settings): readonly ServerSettings['driver'][] {
  const enabled = [...servers.values()].filter((server) => server.enabled)
  return enabled.length === 0 ? [driver] : enabled.map((server) => server.driver)
}

/** The process has ended when what it had outside is gone too. */
function fitted(
  process: SandboxProcess,
  outfit: Outfit,
  outfits: Pick<Outfits, 'dispose'>,
): Omit<Running, 'discreet'> {
  const ended = process.ended.then(async (exit) => {
    await outfits.dispose(outfit)
    return exit
  })
  return {
    ...process,
    ended,
    redactor: outfit.redactor,
    async [Symbol.asyncDispose]() {
      await process[Symbol.asyncDispose]()
      await ended
    },
  }
}

function profileOf({ profiles }: Settings, { name, profile }: ServerSettings): ProfileSettings {
  const found = profiles.get(profile)
  if (found !== undefined) return found
  throw new SallyportError('ERR_PROFILE_UNKNOWN', `servers.${name}.profile: no profile is named ${profile}`, {
    server: name,
  })
}

function commandOf(
  { args }: ServerSettings,
  registration: Registration | null,
): ReturnType<Describe>['command'] {
  if (registration === null) return null
  const { command, image } = registration
  const { name, file } = command
  const path = image === null ? command.path : `${image.pinned}:${command.path}`
  return { name, path, sha256: file.sha256, args }
}

// The values of a server's own variables may be secrets, and hosts may ask too: they see that there is one.
function environmentOf(
  server: ServerSettings,
  settings: Settings,
  { facts }: LaunchHost,
): Record<string, string> {
  const profile = profileOf(settings, server)
  const supplied = profile.network.mode === 'none' ? {} : proxyVariables
  const { variables } = buildEnvironment({ server, profile, daemon: facts.environment, supplied })
  const shown = Object.entries(variables).map(([name, { value, origin }]) => [
    name,
    origin === 'server' ? '(set by the server’s entry)' : value,
  ])
  return Object.fromEntries(shown)
}
