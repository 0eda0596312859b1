// Which arguments a server may be started with: a script, never code; a pinned package, never whatever is newest.
import { SallyportError } from '../../errors.ts'
import { isNormal, isWithin } from '../../lib/path-overlap.ts'
import { kernelTargets } from '../mounts/mount-rules.ts'
import type { CommandKind } from './command-kind.ts'
import type { Interpreter } from './interpreters.ts'
import type { PackageRunner } from './package-runners.ts'

export interface ArgumentRequest {
  readonly server: string
  /** The name that the command was allowed under */
  readonly command: string
  readonly kind: CommandKind
  readonly args: readonly string[]
  /** What `interpreter_options` holds for the command */
  readonly options: readonly string[]
}

export interface JudgedArguments {
  /** Everything behind argv[0] */
  readonly args: readonly string[]
  /** The script that an interpreter runs, which must lie in a read-only mount; null for other programs */
  readonly script: string | null
}

/** The longest argument, the most of them, and the most of all together, bytes. */
const argumentLimitBytes = 131_071
const countLimit = 1024
const totalLimitBytes = 262_144

/**
 * Returns the arguments to start with.
 *
 * 1. every argument: no NUL, and within the sizes
 * 2. a launcher is refused: it would run what its arguments name
 * 3. an interpreter's first argument is the absolute path of a script; its options come from `interpreter_options`
 *    alone, go before the script, and take no code either. What follows the script is the script's own, and holds no
 *    option where the interpreter would read it
 * 4. a package runner's first argument, behind its subcommand, is one package at one version; its options likewise
 *
 * Throws ERR_ARGUMENT_REFUSED, which names the argument and the mend.
 */
export const judgeArguments = (request: ArgumentRequest): JudgedArguments => {
  judgeSizes(request)
  switch (request.kind.kind) {
    case 'launcher':
      throw refused(
        request,
        `command ${request.command} of server ${request.server} is ${request.kind.launcher}, which runs what its arguments name`,
        'name that program itself in allowed_commands and in command',
      )
    case 'interpreter':
      return judgeInterpreter(request, request.kind.interpreter)
    case 'runner':
      return judgeRunner(request, request.kind.runner)
    case 'program':
      if (request.options.length > 0)
        throw refused(
          request,
          `interpreter_options.${request.command} is set, and ${request.command} is not a known interpreter or package runner`,
          'remove it, or set interpreter on the allowed command',
        )
      return { args: request.args, script: null }
  }
}

const judgeSizes = ({ args, ...request }: ArgumentRequest): void => {
  const bytes = args.map((argument) => Buffer.byteLength(argument))
  const nul = args.findIndex((argument) => argument.includes('\0'))
  const long = bytes.findIndex((length) => length > argumentLimitBytes)
  const total = bytes.reduce((sum, length) => sum + length + 1, 0) // each with its NUL
  if (nul >= 0) throw refused(request, `args[${nul}] holds a NUL byte`, 'remove it')
  if (long >= 0)
    throw refused(
      request,
      `args[${long}] has ${bytes[long]} bytes, ${argumentLimitBytes} is the most`,
      'use a file',
    )
  if (args.length > countLimit)
    throw refused(request, `args has ${args.length} elements, ${countLimit} is the most`, 'use a file')
  if (total > totalLimitBytes)
    throw refused(request, `args has ${total} bytes together, ${totalLimitBytes} is the most`, 'use a file')
}

const judgeInterpreter = (request: ArgumentRequest, interpreter: Interpreter): JudgedArguments => {
  const { args, options, command } = request
  judgeOptions(request, interpreter.inlineCode)
  const [script] = args
  if (script === undefined)
    throw refused(
      request,
      `${command} has no arguments and would read its program from stdin`,
      'give the script’s path in the sandbox first, such as /app/dist/index.js',
    )
  if (script.startsWith('-') || script.startsWith('+'))
    throw refused(
      request,
      `args[0] ${shown(script)} is an option of ${command}`,
      `put the script’s path first; options that must be there go into interpreter_options.${command}`,
    )
  if (!isNormal(script))
    throw refused(
      request,
      `args[0] ${shown(script)} is not the absolute path of a script`,
      'give the script’s path in the sandbox, such as /app/dist/index.js, without dots',
    )
  const kernels = kernelTargets.find((folder) => isWithin(script, folder))
  if (kernels !== undefined)
    throw refused(
      request,
      `args[0] ${shown(script)} lies in no mount of the sandbox: what is in ${kernels} is the kernel’s, or others write it`,
      'mount its package, and give its path below package.target',
    )
  const option = interpreter.stopsAtScript ? -1 : args.findIndex((argument) => argument.startsWith('-'))
  if (option >= 0)
    throw refused(
      request,
      `args[${option}] ${shown(args[option] ?? '')} is an option, and ${command} reads options behind its script too`,
      `remove it; options that must be there go into interpreter_options.${command}`,
    )
  return { args: [...options, ...args], script }
}

const npmPackage =
  /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*@\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/
const pythonPackage =
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._,-]+\])?(?:==|@)\d+(?:\.\d+)*(?:(?:a|b|rc|\.post|\.dev)\d+)*$/

const judgeRunner = (request: ArgumentRequest, runner: PackageRunner): JudgedArguments => {
  const { args, options, command } = request
  judgeOptions(request, /^(?:-c|--call|--shell-mode|-p|--package|--spec|--from|--with|--with-.*|-)(?:=.*)?$/)
  const words =
    runner.subcommands.find((subcommand) => subcommand.every((word, index) => args[index] === word)) ?? []
  if (runner.subcommands.length > 0 && words.length === 0)
    throw refused(
      request,
      `args[0] ${shown(args[0] ?? '')} is not a use of ${command} that is known to run one pinned package`,
      `begin with ${runner.subcommands.map((subcommand) => subcommand.join(' ')).join(' or ')} and a package at a version`,
    )
  const spec = args[words.length]
  const at = `args[${words.length}]`
  const example = runner.ecosystem === 'npm' ? 'name@1.2.3' : 'name==1.2.3'
  if (spec === undefined)
    throw refused(request, `${command} is given no package`, `give one at one version, such as ${example}`)
  if (spec.startsWith('-'))
    throw refused(
      request,
      `${at} ${shown(spec)} is an option of ${command}`,
      `put the package first; options that must be there go into interpreter_options.${command}`,
    )
  if (!(runner.ecosystem === 'npm' ? npmPackage : pythonPackage).test(spec))
    throw refused(
      request,
      `${at} ${shown(spec)} is not one package at one version`,
      `pin it, such as ${example}; ranges, tags, paths and addresses are refused`,
    )
  const rest = args.slice(words.length)
  return { args: [...words, ...options, ...(runner.endsOptions ? ['--'] : []), ...rest], script: null }
}

const judgeOptions = (request: ArgumentRequest, takesCode: RegExp): void => {
  const { options, command } = request
  // A control character hides a scheme from the pattern, and not from Node, which drops it: da<newline>ta:
  const found = options.findIndex((option) => takesCode.test(option) || /\p{Cc}/u.test(option))
  if (found >= 0)
    throw refused(
      request,
      `interpreter_options.${command}[${found}] ${shown(options[found] ?? '')} makes ${command} take code or a package from elsewhere`,
      'remove it',
    )
}

const shown = (argument: string): string =>
  JSON.stringify(argument.length > 80 ? `${argument.slice(0, 80)}…` : argument)

const refused = (
  { server, command }: Pick<ArgumentRequest, 'server' | 'command'>,
  what: string,
  mend: string,
): SallyportError =>
  new SallyportError('ERR_ARGUMENT_REFUSED', `server ${server}: ${what}; ${mend}`, { server, command })
