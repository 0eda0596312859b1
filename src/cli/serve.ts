// `sallyport serve`: the daemon, in the foreground or behind a host's back.
import type { Command } from 'commander'
import { thisHost } from '../config/host.ts'
import { runtimeDirectory, stateDirectory } from '../config/paths.ts'
import { SallyportError } from '../errors.ts'
import { growWithin, inlineMore, markLater, mayGrow, optimizeSooner } from '../lib/engine.ts'
import type { Logger } from '../lib/logger.ts'
import type { Settings } from '../schema/settings.ts'
import { type Told, toldBySignals } from './endings.ts'

/** Both halves of V8's young generation, once the daemon answers; calls and launches are no faster with more */
const youngBytes = 32 * 1024 * 1024
/** From when it answers until what its start has left is no reason to take more, ms */
const settleMs = 2000

interface ServeOptions {
  readonly config?: string
  readonly runtime?: string
  readonly state?: string
  readonly background?: boolean
  readonly verbose?: boolean
}

export function registerServe(program: Command): void {
  program
    .command('serve')
    .description('run the daemon that hosts and the other verbs reach')
    .option('--config <file>', 'configuration, instead of the one that is found')
    .option('--runtime <folder>', 'where the sockets are')
    .option('--state <folder>', 'where what must last is kept')
    .option('--background', 'return once a daemon answers; its log is daemon.log in the state folder')
    .option('--verbose', 'log every message')
    .action(async (options: ServeOptions) => {
      const host = thisHost()
      const runtimeDir = await runtimeDirectory(options.runtime, host)
      const stateDir = await stateDirectory(options.state, host)
      if (options.background === true) {
        const { startInBackground } = await import('./background.ts')
        return startInBackground({ host, runtimeDir, stateDir, config: options.config })
      }
      process.exit(await serve(options, { host, runtimeDir, stateDir }))
    })
}

interface Place {
  readonly host: ReturnType<typeof thisHost>
  readonly runtimeDir: string
  readonly stateDir: string
}

async function serve(
  { config, verbose }: ServeOptions,
  { host, runtimeDir, stateDir }: Place,
): Promise<number> {
  const told = toldBySignals()
  // What a start allocates it allocates once: left alone, V8 keeps 32 MiB for the young because of it, for ever after.
  mayGrow(false)

  // 1. What was inherited: nobody else reads what we make, and no descriptor of the caller's reaches a child of ours.
  process.umask(0o077)
  const { closeInherited, failEarly } = await import('../daemon/descriptors.ts')
  const closed = closeInherited()
  failEarly()

  // 2. Settings, wholly valid or not at all.
  const { createLogger } = await import('../log.ts')
  const log = createLogger({ level: verbose === true ? 'debug' : 'info', isTerminal: process.stderr.isTTY })
  const { url } = await import('node:inspector')
  if (url() !== undefined)
    log.warn(
      { url: url() },
      'a debugger listens: who connects to it can do and read all that the daemon can; take --inspect out of NODE_OPTIONS, or of the command',
    )
  if (closed.length > 0) log.debug({ descriptors: closed }, 'inherited descriptors closed')
  const { loadSettingsApart } = await import('../config/load-apart.ts')
  const { findInitBinary } = await import('../sandbox/init-binary.ts')
  const initPath = await findInitBinary()
  const load = ({ signal }: { readonly signal: AbortSignal }): Promise<Settings> =>
    loadSettingsApart(config === undefined ? host : { ...host, path: config }, { initPath, signal })
  // What is to run by them is loaded meanwhile.
  const loaded = await Promise.all([load(told), import('../daemon/start.ts')]).catch((error: unknown) => {
    if (!told.mustEnd) throw error // which may have reached the process that reads the configuration, too
    return null
  })
  // Who must end already takes nothing.
  if (loaded === null || told.mustEnd) return 0
  const [settings, { startDaemon }] = loaded
  for (const warning of settings.warnings) log.warn({ warning }, 'configuration')

  // 3. The daemon, until a signal, its operator or its own trouble ends it.
  const end = endings(told, log)
  const starting = startDaemon({ settings, load, host, runtimeDir, stateDir, log })
  // The daemon tells what it refuses; whether it started at all is seen below.
  told.onReload(() => void starting.then((one) => one.reload()).catch(() => undefined))
  const daemon = await starting
  // What the start has left to survive would double it, of which a daemon at rest needs nothing.
  setTimeout(() => growWithin(youngBytes), settleMs).unref()
  inlineMore()
  optimizeSooner()
  markLater()
  const reason = await Promise.race([daemon.ended, end])

  // 4. Down, in order; a second signal does not wait for it.
  if (reason !== null) log.error({ code: reason.code, err: reason }, 'daemon must end')
  const isClean = await daemon.goDown()
  return reason?.exitStatus ?? (isClean ? 0 : 1)
}

// Resolves with null on a signal, with the error on a bug that nobody caught: a daemon in an unknown state goes down. One that
// shows on the way down is told: nothing else would say why it takes long.
function endings(told: Told, log: Logger): Promise<SallyportError | null> {
  const { promise, resolve } = Promise.withResolvers<SallyportError | null>()
  let isEnding = false
  const end = (reason: SallyportError | null): void => {
    if (isEnding && reason !== null) log.error({ code: reason.code, err: reason }, 'not caught')
    isEnding = true
    resolve(reason)
  }
  void told.end.then(() => end(null))
  process.on('uncaughtException', (error) => end(SallyportError.from(error)))
  process.on('unhandledRejection', (error) => end(SallyportError.from(error)))
  return promise
}
