// What the tests of control groups need from the machine: its level, and proof that nothing is left.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { type CgroupBase, detectCgroups, isWritable } from '../../src/sandbox/cgroup/level.ts'

/** Starts a command inside the groups, as the launcher does: it joins by itself, before anything of it runs. */
export function spawnInside(joinFiles: readonly string[], command: readonly string[]): ChildProcess {
  const join = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"'
  return spawn('/bin/sh', ['-c', join, 'sh', ...joinFiles, '--', ...command], {
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

/** Where a tree can be killed in one write here: also for root beside version 1, where no launch joins it. */
export const hostKill: CgroupBase | null = hostSupport.bases.kill ?? unifiedForRoot()

function unifiedForRoot(): CgroupBase | null {
  const line = /^(?:\S+ ){4}(\S+) .* - cgroup2 /m.exec(readFileSync('/proc/self/mountinfo', 'utf8'))
  const path = line?.[1]
  return process.getuid?.() === 0 && path !== undefined && isWritable(path) ? { version: 2, path } : null
}

/** Directories out of a list that still exist. */
export const leftOf = (directories: readonly string[]): readonly string[] =>
  directories.filter((path) => existsSync(path))
