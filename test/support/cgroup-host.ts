// What the tests of control groups need from the machine: its level, and proof that nothing is left.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { detectCgroups } from '../../src/sandbox/cgroup/level.ts'

/** Starts a command inside the groups, as the launcher does: it joins by itself, before anything of it runs. */
export function spawnInside(procsFiles: readonly string[], command: readonly string[]): ChildProcess {
  const join = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"'
  return spawn('/bin/sh', ['-c', join, 'sh', ...procsFiles, '--', ...command], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** The first line that a child writes. */
export async function firstLine(child: ChildProcess): Promise<string> {
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    if (text.includes('\n')) break
  }
  return text.split('\n')[0] ?? ''
}

/** The limits that control groups can hold here for whoever runs the tests. */
export const hostSupport = detectCgroups()

/** Directories out of a list that still exist. */
export const leftOf = (directories: readonly string[]): readonly string[] =>
  directories.filter((path) => existsSync(path))
