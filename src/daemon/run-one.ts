// One server without a daemon: the same launch, the same policy, on a stream of the caller's.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { Host } from '../config/host.ts'
import { Confided } from '../credentials/confided.ts'
import { SallyportError } from '../errors.ts'
import { loadKey } from '../journal/key.ts'
import { newDaemonId } from '../lib/ids.ts'
import { timeThatStands } from '../lib/standing-clock.ts'
import type { Logger } from '../lib/logger.ts'
import { prepareStateDir } from '../rpc/runtime-dir.ts'
import { findInitBinary } from '../sandbox/init-binary.ts'
import type { Governor, Observation } from '../schema/governor.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'
import { LogRing } from '../supervisor/instance/log-ring.ts'
import type { Emit, Launch, Running, SessionEnd } from '../supervisor/ports.ts'
import type { Era } from '../supervisor/message/probe.ts'
import { Questions } from '../supervisor/questions/questions.ts'
import { TaskIds } from '../supervisor/lanes/tasks.ts'
import { Session } from '../supervisor/session/session.ts'
import { Governance } from './governance/governance.ts'
import { Guard } from './guard.ts'
import { createMachine } from './machine/machine.ts'
import { ourselves } from './ourselves.ts'
import { createOutside, recordOf } from './outside.ts'
import { policyUnder } from './governance/policy.ts'
import { forgetPastRuns, runsFolder } from './past-runs.ts'
import { tellBug } from './bug-log.ts'
import { concealing, discreet, redactorWith } from './redactor.ts'

export interface RunOptions {
  readonly settings: Settings
  /** Name of the one server of the settings that is run */
  readonly name: string
  readonly host: Host
  readonly runtimeDir: string
  readonly stateDir: string
  readonly log: Logger
  /** MCP's two directions; owned from here on */
  readonly stream: Duplex
  /** Hears each line that the server writes to stderr */
  readonly onStderr: (line: string) => void
  /** Told of each process before its first byte, and of all that the server lists, shown to the host or not */
  readonly watch?: {
    launched(process: Running): void
    listed(tools: Observation['tools']): void
  }
}

/**
 * Runs the server until it or its host ends, or the signal is aborted; nothing of it is left when this resolves. Where it
 * rejects something may be, which the guard then takes down as after a death.
 */
export async function runOne(options: RunOptions, waiting: { signal: AbortSignal }): Promise<SessionEnd> {
  const { settings, name, stateDir, log } = options
  const server = settings.servers.get(name)
  if (server === undefined) throw new SallyportError('ERR_SERVER_NOT_FOUND', `no server is named ${name}`)
  await prepareStateDir(stateDir)
  await using folder = await folderIn(stateDir)
  const guard = await guardOf(folder.path, log)
  let isClean = false
  try {
    const end = await runGuarded({ ...options, server, guard, folder: folder.path }, waiting)
    isClean = true
    return end
  } finally {
    await guard.letGo(isClean)
  }
}

interface GuardedOptions extends RunOptions {
  readonly server: ServerSettings
  readonly guard: Guard
  /** Of this run alone */
  readonly folder: string
}

async function runGuarded(options: GuardedOptions, { signal }: { signal: AbortSignal }): Promise<SessionEnd> {
  const { settings, server, host, runtimeDir, stateDir, log, stream, guard, folder } = options
  const daemon = newDaemonId()
  // Nobody else hears of this run: what a daemon tells its operator of a way out that was refused is said here
  const confided = new Confided()
  const emit: Emit = ({ bug, ...event }) => {
    if (bug !== undefined) tellBug(told, event, bug, confided)
    const { type, detail } = discreet(event, confided)
    told[type === 'egress/refused' ? 'warn' : 'debug']({ ...detail }, type)
  }
  // Not in the runtime directory, which a daemon may hold: in the folder of this run.
  await using outside = await createOutside({
    settings,
    environment: host.env,
    runtimeDir: folder,
    guard,
    ...recordOf(() => governance, emit),
  })
  const { outfits } = outside
  const told = concealing(log, outside.broker, settings)
  await using machine = await createMachine({
    settings,
    daemon,
    host,
    runtimeDir,
    stateDir,
    guard,
    outfits,
    confided,
    emit,
    isHeld: (server) => governance.isHeld(server),
    recordImage: (type, body) => governance.recorder.record(type, body),
    log: told,
  })

  const logs = new LogRing(server.output.stderrBytes)
  logs.listen(options.onStderr)
  let halt: (reason: string) => void = () => undefined
  let review = (): void => undefined
  // The daemon's too, with which a run must not begin anew.
  const [keyPath, clockPath] = [join(stateDir, 'journal.key'), join(stateDir, 'clock')]
  const key = await loadKey(keyPath, join(stateDir, 'journal'))
  // A run's own journal: runs go on side by side, and what one of them accepted is not what the next one runs.
  await using governance = await Governance.open({
    settings,
    directory: join(runsFolder(stateDir), daemon),
    keyPath,
    clockPath,
    daemon,
    emit,
    codeOf: machine.codeOf,
    originOf: machine.originOf,
    ownerOf: () => null,
    stands: () => true,
    halt: (_server, reason) => halt(reason),
    review: () => review(),
    redactor: redactorWith(outside.broker),
    outfits,
    confided,
    separation: 'none', // whoever runs it is the host, the operator and the daemon
  })
  await forgetPastRuns({
    stateDir,
    key,
    keepDays: settings.journal.keepDays,
    agesBy: () => timeThatStands(clockPath),
    record: (body) => governance.recorder.record('runs.pruned', body),
  }).catch((error: unknown) => log.warn({ err: error }, 'journals of past runs could not be let go'))
  const { gate, governor } = policyUnder(governance)(() => settings)
  const ports = {
    gate,
    emit,
    pools: machine.pools,
    ...watched({ governor, launch: machine.launch }, options.watch),
  }
  let era: Era | null = null
  const verdicts = { get: () => era, set: (known: Era) => void (era = known) }
  const session = new Session({
    // There is one session, so nothing is shared
    server: { ...server, acceptance: 'first-use', instance: server.instance === 'call' ? 'call' : 'session' },
    toolLimit: settings.tools.perServer,
    caller: ourselves(),
    ports,
    logs,
    verdicts,
    lost: () => undefined,
    attempt: null,
    tasks: new TaskIds(),
    questions: new Questions(),
    runsUnasked: true,
    shared: null,
  })
  // Whose end can't be proven is waited for no longer: what is left of it is the guard's.
  const unproven = Promise.withResolvers<never>()
  halt = (reason) => void session.stop(reason).catch(unproven.reject)
  review = () => session.review()
  await using _ending = {
    [Symbol.asyncDispose]: async () =>
      void (await session.stop('Sallyport is stopping').catch(unproven.reject)),
  }
  const stop = (): void => halt('interrupted')
  signal.addEventListener('abort', stop, { once: true })
  session.take(stream, Buffer.alloc(0))
  try {
    return await Promise.race([session.ended, unproven.promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

// Whoever watches sees what there is, and changes nothing.
function watched(
  ports: { readonly governor: Governor; readonly launch: Launch },
  watch: RunOptions['watch'],
): typeof ports {
  if (watch === undefined) return ports
  const { governor, launch } = ports
  return {
    governor: {
      ...governor,
      observe(seen) {
        watch.listed(seen.tools)
        return governor.observe(seen)
      },
    },
    async launch(...asked) {
      const running = await launch(...asked)
      watch.launched(running)
      return running
    },
  }
}

// A folder of its own: any number may run at once, and each has somebody to clean up after it.
async function folderIn(stateDir: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(stateDir, 'run-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

async function guardOf(folder: string, log: Logger): Promise<Guard> {
  const onLost = (error: SallyportError): void => log.error({ err: error }, 'guard lost')
  const isAnswered = async (): Promise<boolean> => false
  const guard = await Guard.hold({
    initPath: await findInitBinary(),
    runtimeDir: folder,
    stateDir: null,
    log,
    exitsAfter: false,
    onLost,
    isAnswered,
  })
  guard.cleanUp(`rmdir /${folder.slice(1)}`)
  guard.cleanUp(`unlink /${join(folder, 'daemon.lock').slice(1)}`)
  return guard
}
