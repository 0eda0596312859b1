// The small C programs of this folder, built where they are needed.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Builds one of them into a folder with the machine's `cc`; returns its path. */
export function compile(
  name: 'byte-pipe' | 'first-byte' | 'long-answer' | 'round-trip' | 'tcp-relay',
  folder: string,
): string {
  const program = join(folder, name)
  const source = fileURLToPath(new URL(`${name}.c`, import.meta.url))
  const flags = ['-std=gnu11', '-D_GNU_SOURCE', '-O2', '-Wall', '-Wextra', '-Werror']
  execFileSync('cc', [...flags, '-o', program, source])
  return program
}
