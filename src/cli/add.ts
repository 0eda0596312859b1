// `sallyport add NAME`: the operator registers a server, with all that a registration states.
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { readEntry } from '../config/entry.ts'
import { thisHost } from '../config/host.ts'
import { SallyportError } from '../errors.ts'
import { printDone } from './output.ts'
import { parseMount } from './mount.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface AddOptions extends ReachOptions {
  readonly entry?: string
  readonly command?: string
  readonly version?: string
  readonly justification?: string
  readonly trust: 'trusted' | 'untrusted' | 'sandboxed'
  readonly acceptance: 'manual' | 'first-use'
  readonly profile: string
  readonly package?: string
  readonly with: readonly string[]
  readonly mount: readonly string[]
  readonly tag: readonly string[]
  readonly allow: readonly string[]
  readonly declaration?: string
}

type Said = AddOptions & { readonly serverVersion?: string }

export function registerAdd(program: Command): void {
  reaching(program.command('add'))
    .description('register a server for good: sallyport add NAME --command node … -- ARGS, or --entry FILE')
    .argument('<name>')
    .argument('[args...]', 'the server’s own arguments, after --')
    .option('--entry <file>', 'its entry as under `servers` of a configuration, in YAML or JSON')
    .option('--command <name>', 'a name of allowed_commands')
    .option('--server-version <version>', 'part of every tool’s identity')
    .option('--justification <text>', 'why it is registered')
    .addOption(
      new Option('--trust <trust>', 'how far you trust it')
        .choices(['trusted', 'untrusted', 'sandboxed'])
        .default('untrusted'),
    )
    .addOption(
      new Option('--acceptance <who>', 'who accepts its tools')
        .choices(['manual', 'first-use'])
        .default('manual'),
    )
    .option('--declaration <file>', 'what you declare of its tools')
    .option('--profile <name>', 'the ceiling of all it gets', 'offline')
    .option('--package <source:target>', 'its code, read-only')
    .option('--with <folder...>', 'folders that the code resolves from', [])
    .option('--mount <mount...>', 'folders that it sees, each SOURCE:TARGET or SOURCE:TARGET:rw', [])
    .option('--tag <mode...>', 'deployment modes in which it runs; none is every mode', [])
    .option('--allow <tool...>', 'expose only these tools', [])
    .action((server: string, args: readonly string[], options: Said, command: Command) => {
      refuseUnheard(args, options, command)
      return reach(options, 'operator', async ({ client, signal }) => {
        const { entry, directory } =
          options.entry === undefined
            ? { entry: entryOf(args, options), directory: process.cwd() }
            : await readEntry(resolve(options.entry), [thisHost().uid])
        const result = await client.call('servers/add', { server, entry, directory }, { signal })
        const next =
          entry['acceptance'] === 'first-use'
            ? 'its tools are accepted as it first lists them'
            : `sallyport declare ${server} drafts what there is to accept`
        printDone(`${server} ${result.version} is registered; ${next}`, result, options.json)
      })
    })
}

/** What would change nothing of what is registered is refused rather than believed to. */
function refuseUnheard(args: readonly string[], options: Said, command: Command): void {
  if (options.package === undefined && options.with.length > 0)
    throw new SallyportError('ERR_USAGE', '--with is for the code of --package SOURCE:TARGET; say that, too')
  if (options.entry === undefined) return
  const said = command.options.filter(
    (option) =>
      command.getOptionValueSource(option.attributeName()) === 'cli' &&
      !['--entry', '--json', '--runtime'].includes(option.long ?? ''),
  )
  const unheard = [...said.map(({ long }) => long), ...(args.length > 0 ? ['the arguments'] : [])]
  if (unheard.length > 0)
    throw new SallyportError(
      'ERR_USAGE',
      `add: --entry says all of it; leave out ${unheard.join(', ')}, or write that into the file`,
    )
}

function entryOf(args: readonly string[], options: Said): Record<string, unknown> {
  const { command, serverVersion: version, justification, declaration } = options
  const missing = Object.entries({ command, 'server-version': version, justification })
    .filter(([, value]) => value === undefined)
    .map(([name]) => `--${name}`)
  if (missing.length > 0)
    throw new SallyportError('ERR_USAGE', `add: ${missing.join(', ')} must be said, or --entry FILE`)
  return {
    command,
    args: [...args],
    version,
    justification,
    trust: options.trust,
    acceptance: options.acceptance,
    tags: [...options.tag],
    profile: options.profile,
    mounts: options.mount.map(parseMount),
    tools: { allow: [...options.allow] },
    ...(declaration === undefined ? {} : { declaration: resolve(declaration) }),
    ...(options.package === undefined ? {} : { package: packageOf(options.package, options.with) }),
  }
}

function packageOf(text: string, beside: readonly string[]): Record<string, unknown> {
  const [source = '', target = '', ...rest] = text.split(':')
  if (source === '' || !target.startsWith('/') || rest.length > 0)
    throw new SallyportError(
      'ERR_USAGE',
      `--package: got ${text}, expected SOURCE:TARGET, such as ./server:/app`,
    )
  return { source: resolve(source), target, with: beside.map((folder) => resolve(folder)) }
}
