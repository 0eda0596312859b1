// Builds the small C programs that ask the kernel what a confined process may do.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { probeFolderVariable } from './probe-folder.ts'

/** An ordinary uid and gid for tests that run as root; nobody's. */
export const ordinary = { uid: 65534, gid: 65534 } as const

/** Compiles `test/fixtures/probes/NAME.c` statically, once for all tests, and returns a path that every user can read. */
export function buildProbe(name: string): string {
  const folder = process.env[probeFolderVariable]
  if (folder === undefined) throw new Error(`${probeFolderVariable} is unset: probes are built under vitest`)
  const binary = join(folder, basename(name))
  if (existsSync(binary)) return binary
  const source = fileURLToPath(new URL(`../fixtures/probes/${name}.c`, import.meta.url))
  const draft = `${binary}.${process.pid}`
  execFileSync('cc', ['-std=gnu11', '-static', '-O1', '-Wall', '-Wextra', '-Werror', '-o', draft, source])
  renameSync(draft, binary)
  return binary
}

/** Whether this machine has a Go compiler. The tests need none: a static C program stands for its like. */
export const hasGo = (): boolean => spawnSync('go', ['version']).status === 0

/** Compiles `test/fixtures/probes/NAME.go` likewise. */
export function buildGoProbe(name: string): string {
  const folder = process.env[probeFolderVariable]
  if (folder === undefined) throw new Error(`${probeFolderVariable} is unset: probes are built under vitest`)
  const binary = join(folder, basename(name))
  if (existsSync(binary)) return binary
  const source = fileURLToPath(new URL(`../fixtures/probes/${name}.go`, import.meta.url))
  const cache = mkdtempSync(join(tmpdir(), 'sallyport-go-'))
  const draft = `${binary}.${process.pid}`
  execFileSync('go', ['build', '-o', draft, source], {
    env: { ...process.env, CGO_ENABLED: '0', GOCACHE: cache, GOFLAGS: '-modcacherw' },
  })
  rmSync(cache, { recursive: true })
  renameSync(draft, binary)
  return binary
}

/** Puts a command under an ordinary uid when the tests run as root: `[program, ...arguments]`. */
export function asOrdinaryUser(command: readonly string[]): readonly string[] {
  if (process.getuid?.() !== 0) return command
  return ['setpriv', `--reuid=${ordinary.uid}`, `--regid=${ordinary.gid}`, '--clear-groups', ...command]
}
