// The programs that fetch a package and run it: what is pinned in their arguments is all that holds them.
import { programNamed } from './program-name.ts'

/** A program that fetches a package and runs it. */
export interface PackageRunner {
  readonly pattern: RegExp
  /** The words that must come first, in each spelling; none where the package comes first */
  readonly subcommands: readonly (readonly string[])[]
  readonly ecosystem: 'npm' | 'python'
  /** Whether `--` is put before the package, since the runner reads options behind it too */
  readonly endsOptions: boolean
}

const runner = (
  pattern: RegExp,
  ecosystem: PackageRunner['ecosystem'],
  ...subcommands: PackageRunner['subcommands']
): PackageRunner => ({ pattern, ecosystem, subcommands, endsOptions: false })

const runners: readonly PackageRunner[] = [
  runner(programNamed('npx', 'npx-cli\\.js', 'pnpx', 'bunx'), 'npm'),
  { ...runner(programNamed('npm', 'npm-cli\\.js'), 'npm', ['exec'], ['x']), endsOptions: true },
  runner(programNamed('pnpm', 'pnpm\\.c?js'), 'npm', ['dlx']),
  runner(programNamed('yarn', 'yarnpkg', 'yarn\\.js'), 'npm', ['dlx']),
  runner(programNamed('uvx'), 'python'),
  runner(programNamed('uv'), 'python', ['tool', 'run']),
  runner(programNamed('pipx'), 'python', ['run']),
]

/** Returns the package runner whose executables have one of these file names, or null. */
export const packageRunnerCalled = (names: readonly string[]): PackageRunner | null =>
  runners.find(({ pattern }) => names.some((name) => pattern.test(name))) ?? null
