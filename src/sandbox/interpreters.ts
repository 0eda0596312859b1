// Which programs turn their arguments into code, told by name, and by content where the name is no help.
import { basename } from 'node:path'

/** What a program does with its arguments: run a script, fetch a package, run another program, or nothing of that kind. */
export type CommandKind =
  | { readonly kind: 'interpreter'; readonly interpreter: Interpreter }
  | { readonly kind: 'runner'; readonly runner: Runner }
  | { readonly kind: 'launcher'; readonly launcher: string }
  | { readonly kind: 'program' }

/** A program that runs the script named first. */
export interface Interpreter {
  readonly name: string
  /** Names of its executables, version suffix included */
  readonly pattern: RegExp
  /** Options that take code, a module's name or stdin instead of a script; not even the operator's options may hold them */
  readonly inlineCode: RegExp
  /** Bytes that only its executables hold */
  readonly markers: readonly string[]
}

/** A program that fetches a package and runs it. */
export interface Runner {
  readonly name: string
  readonly pattern: RegExp
  /** The words that must come first, e.g. `exec`, in each spelling; empty where the package comes first */
  readonly subcommands: readonly (readonly string[])[]
  readonly ecosystem: 'npm' | 'python'
  /** Whether `--` is put before the package, since the runner reads options behind it too */
  readonly endsOptions: boolean
}

// What distributions append: a version, and a build or a platform.
const suffix = String.raw`(?:-?v?\d+(?:\.\d+)*[a-z]?)?(?:-(?:dbg|debug|static|intel64|[a-z0-9_]+-linux-[a-z0-9]+))?`
const named = (...names: readonly string[]): RegExp => new RegExp(`^(?:${names.join('|')})${suffix}$`, 'i')

const interpreters: readonly Interpreter[] = [
  {
    name: 'node',
    pattern: named('node', 'nodejs', 'iojs', 'electron', 'tsx', 'ts-node', 'ts-node-esm'),
    inlineCode:
      /^(?:-[epci]+|-pe|--eval(?:=.*)?|--print(?:=.*)?|--interactive|--check|--run(?:=.*)?|--test(?:=.*)?|-|inspect|.*data:.*)$/,
    markers: ['NODE_OPTIONS', '_ZN4node5Start'],
  },
  {
    name: 'bun',
    pattern: named('bun'),
    inlineCode: /^(?:-[epi]+|--eval(?:=.*)?|--print(?:=.*)?|-|repl|exec|x|.*data:.*)$/,
    markers: ['BUN_INSTALL'],
  },
  {
    name: 'deno',
    pattern: named('deno'),
    inlineCode: /^(?:eval|repl|-|task|x|.*data:.*)$/,
    markers: ['DENO_DIR'],
  },
  {
    name: 'python',
    pattern: named('python', 'pypy', 'micropython', 'ipython', 'jython', 'graalpy', 'pythonw'),
    inlineCode: /^(?:-|-[a-zA-Z]*[cmi].*)$/,
    markers: ['Py_BytesMain', 'PYTHONSTARTUP'],
  },
  {
    name: 'ruby',
    pattern: named('ruby', 'jruby', 'truffleruby', 'irb', 'mruby'),
    inlineCode: /^(?:-|-[a-zA-Z]*e.*)$/,
    markers: ['ruby_run_node', 'RUBYOPT'],
  },
  {
    name: 'perl',
    pattern: named('perl', 'raku'),
    inlineCode: /^(?:-|-[a-zA-Z]*[eEx].*)$/,
    markers: ['PERL5OPT', 'perl_parse'],
  },
  {
    name: 'php',
    pattern: named('php', 'php-cgi', 'php-cli', 'phpdbg', 'hhvm'),
    inlineCode: /^(?:-|-[rRBFEasS].*|--run.*|--process-.*|--interactive|--server.*)$/,
    markers: ['PHP_INI_SCAN_DIR'],
  },
  {
    name: 'lua',
    pattern: named('lua', 'luajit', 'texlua'),
    inlineCode: /^(?:-|-[ei].*)$/,
    markers: ['LUA_INIT'],
  },
  {
    name: 'tcl',
    pattern: named('tclsh', 'wish', 'expect', 'jimsh'),
    inlineCode: /^(?:-|-[ci].*)$/,
    markers: ['TCLLIBPATH', 'Tcl_MainEx'],
  },
  {
    name: 'shell',
    pattern: named(
      'sh',
      'ash',
      'bash',
      'rbash',
      'dash',
      'zsh',
      'ksh',
      'mksh',
      'csh',
      'tcsh',
      'fish',
      'yash',
      'pwsh',
      'nu',
      'elvish',
      'xonsh',
    ),
    inlineCode: /^(?:-|[-+][a-zA-Z]*[csi].*|--command.*|--init-.*|--rcfile.*|-Command.*|-EncodedCommand.*)$/i,
    markers: ['CDPATH', 'fish_function_path'],
  },
  {
    name: 'java',
    pattern: named('java', 'javaw', 'jshell', 'groovy', 'kotlin', 'scala', 'clojure', 'bb', 'jbang'),
    inlineCode: /^(?:-|-e|@.*|-javaagent.*|-agent.*)$/,
    markers: [],
  },
  {
    name: 'dotnet',
    pattern: named('dotnet', 'mono', 'csi', 'dotnet-script'),
    inlineCode: /^(?:-|exec|run|fsi|tool|-e|eval)$/,
    markers: ['hostfxr_main'],
  },
  {
    name: 'other',
    pattern: named(
      'R',
      'Rscript',
      'julia',
      'guile',
      'racket',
      'scheme',
      'sbcl',
      'clisp',
      'emacs',
      'runghc',
      'runhaskell',
      'ghci',
      'erl',
      'escript',
      'elixir',
      'iex',
      'ocaml',
      'swift',
      'crystal',
      'nim',
      'octave',
      'gjs',
      'qjs',
      'd8',
      'js',
      'hermes',
      'wasmtime',
      'wasmer',
      'nix-shell',
      'osascript',
      'sqlite3',
      'psql',
      'gnuplot',
      'gs',
      'bc',
      'dc',
    ),
    inlineCode: /^(?:-|-[a-zA-Z]*e.*|--eval.*|--expr.*|-c.*|-f-|-i)$/,
    markers: [],
  },
]

const runners: readonly Runner[] = [
  {
    name: 'npx',
    pattern: named('npx', 'npx-cli\\.js', 'pnpx', 'bunx'),
    subcommands: [],
    ecosystem: 'npm',
    endsOptions: false,
  },
  {
    name: 'npm',
    pattern: named('npm', 'npm-cli\\.js'),
    subcommands: [['exec'], ['x']],
    ecosystem: 'npm',
    endsOptions: true,
  },
  {
    name: 'pnpm',
    pattern: named('pnpm', 'pnpm\\.c?js'),
    subcommands: [['dlx']],
    ecosystem: 'npm',
    endsOptions: false,
  },
  {
    name: 'yarn',
    pattern: named('yarn', 'yarnpkg', 'yarn\\.js'),
    subcommands: [['dlx']],
    ecosystem: 'npm',
    endsOptions: false,
  },
  { name: 'uvx', pattern: named('uvx'), subcommands: [], ecosystem: 'python', endsOptions: false },
  {
    name: 'uv',
    pattern: named('uv'),
    subcommands: [['tool', 'run']],
    ecosystem: 'python',
    endsOptions: false,
  },
  { name: 'pipx', pattern: named('pipx'), subcommands: [['run']], ecosystem: 'python', endsOptions: false },
]

const words = (text: string): string[] => text.trim().split(/\s+/)

// Programs that execute what their arguments name, or take a program's text as an argument.
const launchers: ReadonlySet<string> = new Set([
  ...words(
    'env busybox toybox coreutils xargs find fd parallel run-parts watch time gtime script expect unbuffer rlwrap',
  ),
  ...words(
    'nohup timeout nice ionice chrt taskset numactl stdbuf setsid flock prlimit choom setarch linux32 linux64',
  ),
  ...words(
    'i386 x86_64 uname26 faketime eatmydata fakeroot proot catchsegv strace ltrace perf gdb lldb valgrind rr',
  ),
  ...words(
    'sudo doas su sg newgrp runuser setpriv capsh pkexec unshare nsenter chroot bwrap firejail nsjail machinectl',
  ),
  ...words(
    'systemd-run systemctl start-stop-daemon daemon at batch crontab init tini dumb-init catatonit runsv pm2',
  ),
  ...words(
    'nodemon forever concurrently supervisord screen tmux ssh sshpass dbus-run-session dbus-launch xvfb-run',
  ),
  ...words(
    'proxychains proxychains4 torsocks tsocks docker podman nerdctl kubectl ctr runc crun snap flatpak',
  ),
  ...words(
    'awk gawk mawk nawk sed ed ex vi vim nvim nano less more man make gmake ninja cmake just task git hg svn tar',
  ),
  ...words(
    'corepack volta asdf mise nvm fnm pyenv rbenv direnv nix cargo go rustup gem bundle rake conda mamba',
  ),
  ...words('pip pip3 poetry pdm hatch rye tox nox'),
])

/** The dynamic loader runs whatever program it is given. */
const loader = /^(?:ld(?:-linux.*|-musl.*|64|-\d.*)?\.so.*|ld\.so)$/

/** Bytes that only launchers with many faces hold. */
const launcherMarkers: Readonly<Record<string, string>> = {
  'BusyBox v': 'busybox',
  LD_TRACE_LOADED_OBJECTS: 'the dynamic loader',
}

/** Executables whose own first argument, their name, says which program they are. */
const manyFaced: ReadonlySet<string> = new Set(['busybox', 'toybox', 'coreutils', 'busybox-static'])

/**
 * Returns what a program is by its names: the one it was allowed under, its path's and its real path's. One name is
 * enough to be an interpreter, a runner or a launcher; a launcher before all else.
 */
export const kindByName = (name: string, path: string, real: string): CommandKind => {
  const seen = basename(path)
  // /bin/sh that leads to busybox is a shell, since it is started as `sh`.
  const names = [name, seen, ...(manyFaced.has(basename(real)) ? [] : [basename(real)])]
  const launcher = names.find((candidate) => launchers.has(candidate) || loader.test(candidate))
  if (launcher !== undefined) return { kind: 'launcher', launcher }
  const runner = runners.find(({ pattern }) => names.some((candidate) => pattern.test(candidate)))
  if (runner !== undefined) return { kind: 'runner', runner }
  const interpreter = interpreters.find(({ pattern }) => names.some((candidate) => pattern.test(candidate)))
  return interpreter === undefined ? { kind: 'program' } : { kind: 'interpreter', interpreter }
}

/** What `interpreter` of an allowed command may say, besides `none`. */
export const interpreterNames: readonly string[] = interpreters.map(({ name }) => name)

/** Returns the interpreter of that name, or null. */
export const interpreterNamed = (name: string): Interpreter | null =>
  interpreters.find((candidate) => candidate.name === name) ?? null

/** Every marker; one hit is enough. */
export const markers: readonly string[] = [
  ...Object.keys(launcherMarkers),
  ...interpreters.flatMap(({ markers: own }) => own),
]

/** Returns what a program is whose file holds the marker. */
export const kindByMarker = (marker: string): CommandKind => {
  const launcher = launcherMarkers[marker]
  if (launcher !== undefined) return { kind: 'launcher', launcher }
  const interpreter = interpreters.find(({ markers: own }) => own.includes(marker))
  return interpreter === undefined ? { kind: 'program' } : { kind: 'interpreter', interpreter }
}
