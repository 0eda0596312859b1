// `sallyport run -- CMD ARGS`: one server, sandboxed, on this process's stdin and stdout; no daemon, no configuration needed.
import { statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { Duplex } from 'node:stream'
import type { Command } from 'commander'
import { userFolder } from '../config/find.ts'
import { thisHost } from '../config/host.ts'
import type { Host } from '../config/host.ts'
import { runtimeDirectory, stateDirectory } from '../config/paths.ts'
import { SallyportError } from '../errors.ts'
import { isWithin } from '../lib/path-overlap.ts'
import { words } from '../lib/words.ts'
import type { Settings } from '../schema/settings.ts'
import { parseMount } from './mount.ts'
import { collect } from './repeated.ts'
import { parseTarget } from './target.ts'
import { hint, visible } from './output.ts'
import { endUnheard, hearLoss } from './unheard.ts'

interface RunFlags {
  readonly profile?: string
  readonly mount: readonly string[]
  readonly config?: string
  readonly egress?: readonly string[]
}

export function registerRun(program: Command): void {
  program
    .command('run')
    .description('run one server in a sandbox on stdin and stdout, without a daemon')
    .argument('<command>', 'the server’s program')
    .argument('[args...]', 'its arguments')
    .option('--profile <name>', 'what confines it: offline, or with --egress allowlisted-egress, unless said')
    .option('--mount <source:target[:rw]>', 'a folder or file that it sees; may be repeated', collect, [])
    .option('--config <file>', 'configuration whose commands and rules hold')
    .option('--egress <host:port>', 'a target that it may reach', collect)
    .passThroughOptions()
    .action(async (command: string, args: readonly string[], flags: RunFlags) => {
      const status = await run(command, args, flags).catch((error: unknown) => {
        setImmediate(() => process.exit()) // once that is told: what could not be ended would keep this process, too
        throw error
      })
      process.exit(status)
    })
}

async function run(command: string, args: readonly string[], flags: RunFlags): Promise<number> {
  process.umask(0o077)
  const host = thisHost()
  const [{ closeInherited, failEarly }, { createLogger }, { runOne }] = await Promise.all([
    import('../daemon/descriptors.ts'),
    import('../log.ts'),
    import('../daemon/run-one.ts'),
  ])
  closeInherited()
  failEarly()
  const { settings, name } = await settingsFor(command, args, flags, host)
  const log = createLogger({ level: 'warn', isTerminal: process.stderr.isTTY })
  const interrupted = new AbortController()
  let signalled = 0
  for (const [signal, number] of [
    ['SIGTERM', 15],
    ['SIGINT', 2],
    ['SIGHUP', 1],
  ] as const)
    process.once(signal, () => {
      signalled = number
      interrupted.abort()
    })
  // Not at once: its calls go on record, and its server down the ladder.
  const lossOfStdout = hearLoss()
  const end = await runOne(
    {
      settings,
      name,
      host,
      runtimeDir: await runtimeDirectory(undefined, host),
      stateDir: await stateDirectory(undefined, host),
      log,
      stream: Duplex.from({ readable: process.stdin, writable: process.stdout }),
      onStderr: (line) => hint(process.stderr.isTTY ? visible(line) : line),
    },
    { signal: interrupted.signal },
  )
  if (signalled > 0) return 128 + signalled
  const loss = lossOfStdout()
  if (loss !== null && loss.code !== 'EPIPE') endUnheard(loss)
  if (end.status !== 0 && end.reason !== null) hint(`sallyport: ${visible(end.reason)}`)
  return end.status
}

/**
 * The settings that hold: those of the configuration, with the server of the command line in them, or, where there is no
 * configuration, those of the person at the terminal, who is the operator then.
 */
async function settingsFor(
  command: string,
  args: readonly string[],
  flags: RunFlags,
  host: Host,
): Promise<{ settings: Settings; name: string }> {
  const { mount, config } = flags
  const { loadSettings, settingsOf } = await import('../config/load.ts')
  const egress = (flags.egress ?? []).map((target) => parseTarget(target))
  const profile = flags.profile ?? (egress.length > 0 ? 'allowlisted-egress' : 'offline')
  const name = basename(command)
    .replace(/[^A-Za-z0-9_.-]/g, '-')
    .slice(0, 128)
  const found = await loadSettings(config === undefined ? host : { ...host, path: config }).catch(
    unlessNotFound(config),
  )
  const isPath = command.includes('/')
  const mounts = mount.map(parseMount)
  const server = {
    command: isPath && found === null ? name : command,
    args: [...args],
    profile,
    mounts,
    egress,
    trust: found === null ? 'trusted' : 'untrusted',
    justification: 'named on the command line',
  }
  const own = {
    version: 1,
    // With a configuration its list alone decides; this one only lets the value through the schema.
    allowed_commands: [isPath ? { name, path: resolve(command) } : command],
    rules: [{ permission: 'mcp:*:*', action: 'allow' }],
    servers: { [name]: server },
  }
  // Never the working directory: a cloned repository must not bring the profile that confines it.
  const directory = found === null ? userFolder(host) : dirname(found.sources[0]?.path ?? userFolder(host))
  // Where nobody else is the operator, the targets on the command line are as good as a profile's list, and so are the
  // mounts where no profile is named.
  const named = {
    targets: egress,
    ...(flags.profile === undefined && mounts.length > 0 && { mounts: widest(mounts) }),
  }
  const made = await settingsOf(own, directory, found === null ? { ...host, ...named } : host)
  if (found === null) {
    const [where] = isPath ? [resolve(command)] : [`${command} of ${made.commandPath.join(':')}`]
    hint(`sallyport: no configuration; running ${visible(where)} confined by ${profile}, every tool allowed`)
    for (const unseen of unseenFiles(args, mounts))
      hint(
        `sallyport: ${visible(unseen)} is a file of this machine, and not in the sandbox; ` +
          `--mount ${visible(dirname(resolve(unseen)))}:/app makes it /app/${visible(basename(unseen))} there`,
      )
    return { settings: made, name }
  }
  return { settings: { ...found, servers: made.servers, profiles: made.profiles }, name }
}

const widest = (mounts: readonly { readonly access: string }[]): 'read' | 'write' =>
  mounts.some(({ access }) => access === 'write') ? 'write' : 'read'

/** What every sandbox has at the same path, be it of its own, or what no mount could show there. */
const known = words(
  '/usr /bin /sbin /lib /lib32 /lib64 /libx32 /proc /sys /etc/passwd /etc/group /etc/hosts /etc/nsswitch.conf /etc/resolv.conf /etc/ld.so.cache',
)

/** Arguments that name a file here, and nothing where the server runs. */
const unseenFiles = (
  args: readonly string[],
  mounts: readonly { readonly target: string }[],
): readonly string[] =>
  args.filter((argument) => {
    const path = resolve(argument)
    const isSeen = [...known, ...mounts.map(({ target }) => target)].some((folder) => isWithin(path, folder))
    return !isSeen && isFile(path)
  })

const isFile = (path: string): boolean => {
  try {
    return statSync(path).isFile()
  } catch {
    // An argument that is no path at all, mostly
    return false
  }
}

function unlessNotFound(config: string | undefined): (error: unknown) => null {
  return (error) => {
    if (config === undefined && error instanceof SallyportError && error.code === 'ERR_CONFIG_NOT_FOUND')
      return null
    throw error
  }
}
