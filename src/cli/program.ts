// The verbs, each loaded only when it is asked for.
import { Command, CommanderError } from 'commander'
import { SallyportError } from '../errors.ts'
import { packageVersion } from '../lib/version.ts'
import { printJson, visible } from './output.ts'
import { expectOnce } from './repeated.ts'
import { endUnheard } from './unheard.ts'

type Register = (program: Command) => void

/** Verb -> the file that knows it, in the order of the help. */
const verbs: Readonly<Record<string, () => Promise<Register>>> = {
  serve: async () => (await import('./serve.ts')).registerServe,
  stdio: async () => (await import('./stdio.ts')).registerStdio,
  run: async () => (await import('./run.ts')).registerRun,
  call: async () => (await import('./call.ts')).registerCall,
  ps: async () => (await import('./ps.ts')).registerPs,
  tools: async () => (await import('./tools.ts')).registerTools,
  logs: async () => (await import('./logs.ts')).registerLogs,
  events: async () => (await import('./events.ts')).registerEvents,
  show: async () => (await import('./show.ts')).registerShow,
  start: async () => (await import('./start.ts')).registerStart,
  stop: async () => (await import('./stop.ts')).registerStop,
  test: async () => (await import('./test.ts')).registerTest,
  add: async () => (await import('./add.ts')).registerAdd,
  remove: async () => (await import('./remove.ts')).registerRemove,
  declare: async () => (await import('./declare.ts')).registerDeclare,
  accept: async () => (await import('./accept.ts')).registerAccept,
  approvals: async () => (await import('./approvals.ts')).registerApprovals,
  approve: async () => (await import('./approve.ts')).registerApprove,
  deny: async () => (await import('./deny.ts')).registerDeny,
  hold: async () => (await import('./hold.ts')).registerHold,
  release: async () => (await import('./release.ts')).registerRelease,
  trust: async () => (await import('./trust.ts')).registerTrust,
  permits: async () => (await import('./permits.ts')).registerPermits,
  audit: async () => (await import('./audit.ts')).registerAudit,
  explain: async () => (await import('./explain.ts')).registerExplain,
  reload: async () => (await import('./reload.ts')).registerReload,
  install: async () => (await import('./install.ts')).registerInstall,
  profile: async () => (await import('./profile.ts')).registerProfile,
  verify: async () => (await import('./verify.ts')).registerVerify,
  doctor: async () => (await import('./doctor.ts')).registerDoctor,
}

/** Runs one command line; sets the exit status of the process and never throws. */
export async function main(argv: readonly string[]): Promise<void> {
  process.stdout.on('error', endUnheard)
  process.stderr.on('error', () => undefined) // what can't be said changes neither what is done nor the status
  const wantsJson = argv.includes('--json') && argv[0] !== 'run' // what follows `run` may be the server's
  try {
    if (argv[0] === '--version' || argv[0] === '-V') {
      process.stdout.write(`${packageVersion()}\n`)
      return
    }
    const program = await programFor(argv[0])
    if (argv.length === 0) program.outputHelp()
    else await program.parseAsync([...argv], { from: 'user' })
  } catch (error) {
    process.exitCode = report(error, argv, wantsJson)
  }
}

/** The whole program, or that of one verb. */
export async function programFor(verb: string | undefined): Promise<Command> {
  const program = new Command('sallyport')
  program
    .description('Runs stdio MCP servers that nobody should trust, each in its own sandbox.')
    .version(packageVersion(), '-V, --version')
    .enablePositionalOptions() // what follows `run -- CMD` is the server's
    .exitOverride()
    .configureOutput({ writeErr: () => undefined }) // one line of ours instead
  const load = verb !== undefined && Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
  const loaders = load === undefined ? Object.values(verbs) : [load]
  for (const register of await Promise.all(loaders.map((loader) => loader()))) register(program)
  for (const command of program.commands) {
    command.copyInheritedSettings(program)
    tellWhose(command, `sallyport ${command.name()}`)
  }
  expectOnce(program)
  return program
}

/** What was misused -> whose help tells more */
const helpOf = new WeakMap<CommanderError, string>()

function tellWhose(command: Command, called: string): void {
  for (const inner of command.commands) tellWhose(inner, `${called} ${inner.name()}`)
  command.exitOverride((error) => {
    helpOf.set(error, called)
    throw error
  })
}

function report(error: unknown, argv: readonly string[], wantsJson: boolean): number {
  if (error instanceof CommanderError && error.exitCode === 0) return 0 // help or version
  const failure = error instanceof CommanderError ? misused(error, argv) : SallyportError.from(error)
  if (wantsJson) printJson({ error: failure.toRpc() })
  process.stderr.write(`sallyport: ${visible(sentence(failure))} (${failure.code})\n`)
  // An error of ours has no stack: what it was made of may
  const thrown = error instanceof SallyportError ? error.cause : error
  if (failure.code === 'ERR_INTERNAL' && thrown instanceof Error)
    process.stderr.write(`${thrown.stack ?? ''}\n`)
  return failure.exitStatus
}

// One line, whose help is that of the verb that was meant; `help nonsense` only shows all of it again.
function misused(error: CommanderError, [verb, next]: readonly string[]): SallyportError {
  const said = error.message
    .replace(/^error: /, '')
    .replace(/\.$/, '')
    .replaceAll('\n', ' ')
  const missing = verb === 'help' ? `unknown command '${next}'` : 'a verb is missing'
  const help = `${helpOf.get(error) ?? 'sallyport'} --help`
  return new SallyportError('ERR_USAGE', `${said === '(outputHelp)' ? missing : said}; see ${help}`)
}

// What hosts match on is one fixed sentence; people are told the reason as well.
function sentence({ message, details }: SallyportError): string {
  const { reason } = details
  return typeof reason !== 'string' || message.includes(reason) ? message : `${message}: ${reason}`
}
