// The harnesses of sandbox/fuzz: built, given their corpus as files, and run by libFuzzer or one input after the other.
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { availableParallelism } from 'node:os'
import { root } from '../support/source.ts'
import { readCorpus } from './corpus.ts'

type Build = 'engine' | 'replay' | 'plain'

/** Builds harnesses in a tree, which is the repository or has the same of it. */
export function make(builds: readonly Build[], tree = root): void {
  // As the Makefile names them: from its own folder.
  const programs = builds.map((build) => join('../dist/.fuzz', build, 'run'))
  execFileSync('make', ['-s', `-j${availableParallelism()}`, '-C', join(tree, 'sandbox'), ...programs], {
    stdio: ['ignore', 'inherit', 'pipe'],
  })
}

/** What this machine lacks for the engine's build, and what helps; null where it lacks nothing. */
export function engineLack(): string | null {
  const input =
    'int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return data && size ? 0 : 0; }'
  const args = ['-fsanitize=fuzzer', '-x', 'c', '-o', '/dev/null', '-']
  const { error, status } = spawnSync('clang', args, { input, stdio: ['pipe', 'ignore', 'ignore'] })
  if (status === 0) return null
  const what =
    error === undefined ? 'clang builds nothing with libFuzzer' : `clang cannot be started (${error.message})`
  return `${what}; install clang and libclang-rt-dev (as root, npm run fuzz does), or name parsers that are not C with --only`
}

/** The program of a build. */
export const programOf = (build: Build, tree = root): string => join(tree, 'dist/.fuzz', build, 'run')

/** Copies what the harnesses are built of, for who wants to change it, and a build, of which the rest need not be built again. */
export function copyTree(to: string, build: Build): void {
  const built = join('dist/.fuzz', build)
  for (const part of ['sandbox/Makefile', 'sandbox/init', 'sandbox/fuzz', 'src/errors.ts', built])
    cpSync(join(root, part), join(to, part), { recursive: true, preserveTimestamps: true })
}

/** The path under which the engine's build is the harness of that name. */
export function harnessAt(folder: string, name: string): string {
  const path = join(folder, `engine-${name}`)
  symlinkSync(programOf('engine'), path)
  return path
}

/** Writes a corpus as the files that libFuzzer wants; returns their folder. */
export function unpack(folder: string, name: string): string {
  const path = join(folder, `corpus-${name}`)
  mkdirSync(path)
  for (const [index, input] of readCorpus(name).entries())
    writeFileSync(join(path, String(index).padStart(4, '0')), input)
  return path
}

/** The inputs of a folder whose names begin so. */
export const inputsIn = (folder: string, prefix = ''): readonly Buffer[] =>
  readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .map((name) => readFileSync(join(folder, name)))

/** What became of a program. */
export interface Ran {
  readonly code: number | string
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end, however it ends; `ms` later it is killed. */
export function ran(program: string, args: readonly string[], ms: number): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>()
  const options = { timeout: ms, killSignal: 'SIGKILL', maxBuffer: 64 << 20, encoding: 'utf8' } as const
  execFile(program, args, options, (error, stdout, stderr) =>
    resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? 1), stdout, stderr }),
  )
  return promise
}
