// Builds the small C programs that ask the kernel what a confined process may do.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll } from 'vitest'

/** An ordinary uid and gid for tests that run as root; nobody's. */
export const ordinary = { uid: 65534, gid: 65534 } as const

/** Compiles `test/fixtures/probes/NAME.c` statically into a folder that every user can read until the tests of the file end. */
export function buildProbe(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-probe-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o755)
  const binary = join(folder, basename(name))
  const source = new URL(`../fixtures/probes/${name}.c`, import.meta.url).pathname
  execFileSync('cc', ['-std=gnu11', '-static', '-O1', '-Wall', '-Wextra', '-Werror', '-o', binary, source])
  return binary
}

/** Puts a command under an ordinary uid when the tests run as root: `[program, ...arguments]`. */
export function asOrdinaryUser(command: readonly string[]): readonly string[] {
  if (process.getuid?.() !== 0) return command
  return ['setpriv', `--reuid=${ordinary.uid}`, `--regid=${ordinary.gid}`, '--clear-groups', ...command]
}
