// The harnesses of sandbox/fuzz: built, given their corpus as files, and run by libFuzzer or one input after the other.
import { execFile, execFileSync } from 'node:child_process'
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
