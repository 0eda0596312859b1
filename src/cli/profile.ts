// sallyport profile list | show | lint | explain | diff | learn: what profiles there are, and what they give.
import { realpathSync } from 'node:fs'
import { Argument, type Command } from 'commander'
import { namedFolder } from '../config/find.ts'
import { thisHost } from '../config/host.ts'
import { diffProfiles, type ProfileDiff } from '../config/profile-diff.ts'
import { explainProfile, type PathJudge, type SyscallJudge } from '../config/profile-explain.ts'
import { subjects, type Subject } from '../config/profile-verdict.ts'
import { profileSearch, type ProfileSearch } from '../config/profile-layers.ts'
import { lintProfile, type LintReport } from '../config/profile-lint.ts'
import { formatProfile, listProfiles, showProfile } from '../config/profile-show.ts'
import { loadProfile } from '../config/profile.ts'
import { visibleJson } from '../lib/visible-json.ts'
import { registerLearn } from './learn.ts'
import { visibleLines } from './output.ts'
import { findDenials } from '../sandbox/mounts/denials.ts'
import { explainPath, sandboxUserOf } from '../sandbox/explain-path.ts'
import { denialOf } from '../sandbox/mounts/mount-rules.ts'
import { decideSyscalls, explainSyscall } from '../sandbox/syscalls.ts'

interface ProfileOptions {
  readonly config?: string
  readonly json?: boolean
}

/** Adds the verb and its acts to a program. Failures are thrown; a profile that lint refuses sets exit status 7. */
export function registerProfile(program: Command): void {
  const profile = program.command('profile').description('show, lint, explain and compare profiles')
  const act = (name: string, description: string): Command =>
    profile
      .command(name)
      .description(description)
      .option('--config <file>', 'look beside this configuration file, too')
      .option('--json', 'print JSON')

  act('list', 'list the profiles that can be found').action(async (options: ProfileOptions) => {
    const listed = await listProfiles(searchFor(options))
    print(options, listed, () =>
      listed.map(({ name, mounts, network, description, valid }) =>
        valid
          ? `${name.padEnd(20)} mounts ${mounts?.padEnd(6)} network ${network?.padEnd(10)} ${description}`
          : `${name.padEnd(20)} invalid: ${description}`,
      ),
    )
  })

  act('show', 'show a profile with everything that it extends folded in')
    .argument('<profile>', 'a name or a file')
    .action(async (name: string, options: ProfileOptions) => {
      const shown = showProfile(await loadProfile(name, searchFor(options)))
      print(options, shown, () => [formatProfile(shown).trimEnd()])
    })

  act('lint', 'say what is wrong with profiles, and what is dangerous in them')
    .argument('<profile...>', 'names or files')
    .action(async (names: readonly string[], options: ProfileOptions) => {
      const reports: LintReport[] = []
      for (const name of names)
        reports.push(await lintProfile(name, searchFor(options), checkSyscalls, judgeMount))
      print(options, reports, () => reports.flatMap(formatReport))
      if (reports.some(({ valid }) => !valid)) process.exitCode = 7
    })

  act('explain', 'say what one thing gets under a profile, and which line decides')
    .argument('<profile>', 'a name or a file')
    .addArgument(new Argument('<subject>', 'what kind of thing').choices([...subjects, 'variable']))
    .argument(
      '<name>',
      'a path, a host or host:port, a kind of credential, a variable, a system call or a limit',
    )
    .action(async (name: string, subject: Subject | 'variable', thing: string, options: ProfileOptions) => {
      const explained = await explainProfile(
        await loadProfile(name, searchFor(options)),
        subject === 'variable' ? 'env' : subject,
        thing,
        judgeSyscall,
        judgePath,
      )
      print(options, explained, () => [`${explained.gets}: ${explained.because} (${explained.decided_by})`])
    })

  act('diff', 'say what a server could newly do under a second profile')
    .argument('<from>', 'a name or a file')
    .argument('<to>', 'a name or a file')
    .action(async (from: string, to: string, options: ProfileOptions) => {
      const diff = await diffProfiles(from, to, searchFor(options), judgeSyscall)
      print(options, diff, () => formatDiff(diff))
    })

  registerLearn(profile)
}

function searchFor({ config }: ProfileOptions): ProfileSearch {
  const host = thisHost()
  const configFolder = namedFolder({ ...host, ...(config === undefined ? {} : { path: config }) })
  return profileSearch(host, configFolder === null ? {} : { configFolder })
}

/** The same shape for programs as for people, who get lines. */
function print(options: ProfileOptions, value: unknown, lines: () => readonly string[]): void {
  if (options.json === true) process.stdout.write(`${visibleJson(value, 2)}\n`)
  else for (const line of lines()) process.stdout.write(`${visibleLines(line, process.stdout)}\n`)
}

function formatReport({ profile, valid, findings }: LintReport): readonly string[] {
  const verdict = valid ? 'valid' : 'invalid'
  return [`${profile}: ${verdict}`, ...findings.map(({ level, message }) => `  ${level}: ${message}`)]
}

function formatDiff({ from, to, newly, no_longer: noLonger }: ProfileDiff): readonly string[] {
  const lines = (changes: ProfileDiff['newly'], sign: string): readonly string[] =>
    changes.map(({ could, decided_at: decidedAt }) => `  ${sign} ${could} (${decidedAt})`)
  return [
    newly.length === 0
      ? `under ${to} a server could do nothing that it could not under ${from}`
      : `under ${to}, and not under ${from}, a server could`,
    ...lines(newly, '+'),
    ...(noLonger.length === 0 ? [] : [`and no longer`, ...lines(noLonger, '-')]),
  ]
}

/** As a launch by whoever asks: what their own variables name, and the homes of this machine. */
const denialFor = (path: string, access: 'read' | 'write') => {
  const { env, home } = thisHost()
  return denialOf(path, access, findDenials({ own: [], homes: [home], environment: env }, [path]))
}

const judgeMount = (path: string, access: 'read' | 'write'): string | null =>
  denialFor(realpathSync(path), access)?.why ?? null

const judgePath: PathJudge = (profile, path) => {
  const { env, home, uid } = thisHost()
  const user = sandboxUserOf(uid, process.getgid?.() ?? uid)
  return explainPath(profile, path, user, { own: [], homes: [home], environment: env })
}

const checkSyscalls = (policy: Parameters<SyscallJudge>[1]): void => void decideSyscalls(policy)

/** One word for the whole call; where its arguments count, every rule is said in the order in which they are tried. */
const judgeSyscall: SyscallJudge = (name, policy) => {
  const { rules, decidedBy } = explainSyscall(name, policy)
  const actions = new Set(rules.map(({ action }) => action))
  const [only] = actions
  const single = only === 'allow' ? 'allowed' : `refused (${only})`
  return {
    gets: actions.size === 1 ? single : 'depends on its arguments',
    because: rules
      .map(({ action, comment }) => (rules.length === 1 ? comment : `${action}: ${comment}`))
      .join(' '),
    decidedBy,
  }
}
