// What the kernel holds a process to by its control group, read from outside: what stands in the group's own files.
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { isMissing } from '../../lib/missing.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { Control } from '../../sandbox/cgroup/level.ts'

const files = {
  1: {
    memory: ['memory.limit_in_bytes'],
    pids: ['pids.max'],
    cpu: ['cpu.cfs_quota_us', 'cpu.cfs_period_us'],
  },
  2: { memory: ['memory.max'], pids: ['pids.max'], cpu: ['cpu.max'] },
} as const satisfies Record<1 | 2, Record<Control, readonly string[]>>

/**
 * Returns the limit of the group that the process is in, or null where there is none or the group is this process's own: bytes,
 * tasks, or processors as a fraction. `either` is the version that has the control on this machine. Throws where it can't be read.
 */
export const heldByGroup = async (
  pid: number,
  which: 1 | 2 | 'either',
  control: Control,
): Promise<number | null> => {
  const version = await versionOf(pid, which, control)
  const folder = await ownFolder(pid, version, control)
  if (folder === null) return null
  const found = await Promise.all(files[version][control].map((name) => numbersIn(join(folder, name))))
  const [value = null, period = 1] = found.flat()
  return value === null || period === null ? null : value / period
}

/**
 * Returns how much the group may swap beyond its memory, bytes, or null where nothing holds it; `uncounted` where this kernel keeps
 * no account of swap for groups. `either` is the version that has the control on this machine.
 */
export const swapOfGroup = async (
  pid: number,
  which: 1 | 2 | 'either',
): Promise<number | null | 'uncounted'> => {
  const version = await versionOf(pid, which, 'memory')
  const folder = await ownFolder(pid, version, 'memory')
  if (folder === null) return null
  const read = async (name: string): Promise<number | null> =>
    (await numbersIn(join(folder, name)))[0] ?? null
  const [memoryFile] = files[version].memory
  const memory = await read(memoryFile)
  // In a folder that has the one, the other is missing only where it isn't counted.
  const most = await read(version === 1 ? 'memory.memsw.limit_in_bytes' : 'memory.swap.max').catch(
    (error: unknown) => {
      if (isMissing(error)) return 'uncounted' as const
      throw error
    },
  )
  if (most === 'uncounted' || version === 2) return most
  return most === null || memory === null || memory >= unlimited ? null : most - memory
}

/** The numbers in a file of a group, each null where that is no limit. Throws where it has something else, or nothing. */
const numbersIn = async (path: string): Promise<readonly (number | null)[]> =>
  (await readFile(path, 'utf8'))
    .trim()
    .split(/\s+/)
    .map((word) => {
      if (word === 'max' || word === '-1') return null
      if (/^\d+$/.test(word)) return Number(word)
      throw new Error(`${path} says ${JSON.stringify(word)}, which is no limit`)
    })

/** What version 1 gives as the limit of a group that has none, and above it */
const unlimited = 2 ** 62

const versionOf = async (pid: number, which: 1 | 2 | 'either', control: Control): Promise<1 | 2> =>
  which === 'either' ? ((await groupOf(pid, 1, control)) === null ? 2 : 1) : which

const ownFolder = async (pid: number, version: 1 | 2, control: Control): Promise<string | null> => {
  const [group, own] = await Promise.all([pid, process.pid].map((it) => groupOf(it, version, control)))
  if (group === undefined || group === null || group === own) return null
  return folderOf(group, version, control)
}

const groupOf = async (pid: number, version: 1 | 2, control: Control): Promise<string | null> => {
  const lines = (await readFile(`/proc/${pid}/cgroup`, 'utf8')).trim().split('\n')
  for (const line of lines) {
    const [, number = '', controls = '', path = ''] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? []
    if (version === 2 ? number === '0' : controls.split(',').includes(control)) return path
  }
  return null
}

// A container may have mounted its own group in the place of the root of all.
const folderOf = async (group: string, version: 1 | 2, control: Control): Promise<string | null> => {
  for (const line of (await readFile('/proc/self/mountinfo', 'utf8')).trim().split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const [type, , options = ''] = after.split(' ')
    const isIt =
      version === 2 ? type === 'cgroup2' : type === 'cgroup' && options.split(',').includes(control)
    const [, , , root = '/', target] = before.split(' ')
    if (isIt && target !== undefined && isWithin(group, root)) return join(target, relative(root, group))
  }
  return null
}
