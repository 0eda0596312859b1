// Builds the small C programs that ask the kernel what a confined process may do.
import { execFileSync } from 'node:child_process'
import { existsSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { probeFolderVariable } from './probe-folder.ts'

/** An ordinary uid and gid for tests that run as root; nobody's. */
export const ordinary = { uid: 65534, gid: 65534 } as const

/** Compiles `test/fixtures/probes/NAME.c` statically, once for all tests, and returns a path that every user can read. */
export function buildProbe(name: string): string {
  const folder = process.env[probeFolderVariable]
  if (folder === undefined) throw new Error(`${probeFolderVariable} is unset: probes are built under vitest`)
  const binary = join(folder, basename(name))
  if (existsSync(binary)) return binary
  const source = new URL(`../fixtures/probes/${name}.c`, import.meta.url).pathname
  const draft = `${binary}.${process.pid}`
  execFileSync('cc', ['-std=gnu11', '-static', '-O1', '-Wall', '-Wextra', '-Werror', '-o', draft, source])
  renameSync(draft, binary)
  return binary
}

/** Puts a command under an ordinary uid when the tests run as root: `[program, ...arguments]`. */
export function asOrdinaryUser(command: readonly string[]): readonly string[] {
  if (process.getuid?.() !== 0) return command
  return ['setpriv', `--reuid=${ordinary.uid}`, `--regid=${ordinary.gid}`, '--clear-groups', ...command]
}
