// The programs that run a script, each with the options by which it would take code from elsewhere.
import { words } from '../../lib/words.ts'
import { programNamed } from './program-name.ts'

/** A program that runs the script named first. */
export interface Interpreter {
  readonly name: string
  readonly pattern: RegExp
  /** Options that take code, a module's name or stdin instead of a script; not even the operator's options may hold them */
  readonly inlineCode: RegExp
  /** Whether all that follows the script is the script's own; where not, no option may follow it */
  readonly stopsAtScript: boolean
  /** Bytes that only its executables hold */
  readonly markers: readonly string[]
}

const interpreter = (
  name: string,
  programs: string,
  inlineCode: RegExp,
  markers: readonly string[] = [],
  stopsAtScript = true,
): Interpreter => ({ name, pattern: programNamed(...words(programs)), inlineCode, markers, stopsAtScript })

const interpreters: readonly Interpreter[] = [
  interpreter(
    'node',
    'node nodejs iojs tsx ts-node ts-node-esm',
    /^(?:-|-[cepi]+|--eval(?:=.*)?|--print(?:=.*)?|--interactive|--check|--run(?:=.*)?|--test(?:=.*)?|inspect|.*[dD][aA][tT][aA]:.*)$/,
    ['NODE_OPTIONS', '_ZN4node5Start'],
  ),
  interpreter(
    'bun',
    'bun',
    /^(?:-|-[epi]+|--eval(?:=.*)?|--print(?:=.*)?|repl|exec|x|.*[dD][aA][tT][aA]:.*)$/,
    ['BUN_INSTALL'],
  ),
  interpreter('deno', 'deno', /^(?:-|eval|repl|task|x|.*[dD][aA][tT][aA]:.*)$/, ['DENO_DIR']),
  interpreter(
    'python',
    'python pythonw pypy micropython ipython jython graalpy',
    /^(?:-|-[bBdEIOPqRsSuvx]*[cim].*)$/,
    ['Py_BytesMain', 'PYTHONSTARTUP'],
  ),
  interpreter('ruby', 'ruby jruby truffleruby mruby irb', /^(?:-|-[aclnpsSvwy]*e.*)$/, [
    'ruby_run_node',
    'RUBYOPT',
  ]),
  // -M and -m take a module and whatever statements follow its name.
  interpreter('perl', 'perl', /^(?:-|-[acdlnpsStTuUvwWX0-9]*[eEmMx].*)$/, ['PERL5OPT', 'perl_parse']),
  interpreter(
    'php',
    'php php-cgi php-cli phpdbg hhvm',
    /^(?:-|-[aBEFrRsS].*|--(?:run|process|interactive|server).*)$/,
    ['PHP_INI_SCAN_DIR'],
  ),
  interpreter('lua', 'lua luajit texlua', /^(?:-|-[ei].*)$/, ['LUA_INIT']),
  interpreter('tcl', 'tclsh wish jimsh', /^(?:-|-[ci].*)$/, ['TCLLIBPATH', 'Tcl_MainEx']),
  interpreter(
    'shell',
    'sh ash bash rbash dash zsh ksh mksh oksh csh tcsh yash fish nu elvish xonsh pwsh',
    /^(?:-|[-+][a-zA-Z]*[cis].*|--command.*|--init-.*|--rcfile.*)$/i,
    ['CDPATH', 'fish_function_path'],
  ),
  interpreter('java', 'java javaw', /^(?:-|@.*|-javaagent.*|-agent.*)$/),
  interpreter('dotnet', 'dotnet mono', /^(?:-|exec|run|fsi|tool)$/, ['hostfxr_main'], false),
  interpreter(
    'other',
    `electron R Rscript raku julia guile racket scheme sbcl clisp runghc runhaskell ghci erl escript elixir iex ocaml swift
    crystal nim octave gjs qjs d8 js hermes wasmtime wasmer groovy kotlin scala clojure bb jbang jshell csi dotnet-script`,
    /^(?:-|-[a-zA-Z]*[ex].*|--eval.*|--expr.*|-c.*|-i)$/,
    [],
    false,
  ),
]

/** Returns the interpreter whose executables have one of these file names, or null. */
export const interpreterCalled = (names: readonly string[]): Interpreter | null =>
  interpreters.find(({ pattern }) => names.some((name) => pattern.test(name))) ?? null

/** Returns the interpreter whose executables hold the marker, or null. */
export const interpreterMarked = (marker: string): Interpreter | null =>
  interpreters.find(({ markers }) => markers.includes(marker)) ?? null

/** Returns what `interpreter` of an allowed command means, or null where there is no such interpreter. */
export const interpreterNamed = (name: string): Interpreter | null =>
  interpreters.find((candidate) => candidate.name === name) ?? null

/** What `interpreter` of an allowed command may say, besides `none`. */
export const interpreterNames: readonly string[] = interpreters.map(({ name }) => name)

/** Every marker; one hit is enough. */
export const interpreterMarkers: readonly string[] = interpreters.flatMap(({ markers }) => markers)
