// What a path of /proc shows in a sandbox: its own processes, the kernel's facts, and covers over the host's.
import { lstatSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { isWithin } from '../../lib/path-overlap.ts'
import type { ProcMask } from './masks.ts'
import type { Entry } from './shown-entry.ts'

/** Links of a process that lead to what it has, not to a path. */
const linkFolders = ['fd', 'ns', 'map_files']
const links = ['exe', 'cwd', 'root']

/** What the kernel says of a process only to those who may look into it. */
const inner = ['maps', 'smaps', 'smaps_rollup', 'numa_maps']

/** Returns what is at a path of /proc; everything but a process's own is as this machine's kernel has it. */
export const procEntry = (at: string, masks: readonly ProcMask[]): Entry => {
  const mask = masks.find(({ path }) => isWithin(at, path))
  if (mask !== undefined) return maskedEntry(mask, at)
  const [first = '', ...rest] = at.split('/').slice(2)
  if (first === '')
    return { gets: 'own', because: 'the sandbox’s own, with its own processes and no others', mayEnter: true }
  if (first === 'net' || first === 'mounts') return { link: `/proc/self/${[first, ...rest].join('/')}` }
  if (first === 'self' || first === 'thread-self') return processEntry(rest, 'own')
  if (first === '1') return processEntry(rest, 'first')
  if (/^[0-9]+$/.test(first))
    return {
      gets: 'own',
      because: 'there while a process of the sandbox’s own has this number; the host’s are not there',
      mayEnter: true,
    }
  const found = look(at)
  if (found === null) return absent
  const [mayRead] = bitsOf(found, 0)
  const what = isWithin(at, '/proc/sys')
    ? 'a setting of the kernel’s, read-only'
    : 'what the kernel says of the machine'
  return mayRead
    ? { gets: 'read', because: what, mayEnter: found.isDirectory() }
    : { gets: 'closed', because: `${what}; its mode shuts it to the server’s user`, mayEnter: false }
}

const absent: Entry = { gets: 'absent', because: 'this machine’s kernel has nothing there', mayEnter: false }

const maskedEntry = ({ path, kind }: ProcMask, at: string): Entry => {
  if (at !== path) return { gets: 'absent', because: `an empty folder covers ${path}`, mayEnter: false }
  const because = kind === 'file' ? 'covered by a device that opens for nobody' : 'covered by an empty folder'
  return { gets: 'masked', because, mayEnter: kind === 'directory' }
}

// The server's own are its user's; PID 1 lets nobody look into it, so they are root's, who is nobody there.
const processEntry = (names: readonly string[], whose: 'own' | 'first'): Entry => {
  if (names[0] === 'task' && names.length > 1) return processEntry(names.slice(2), whose)
  const [name = '', below] = names
  const because = whose === 'own' ? 'the process’s own' : 'of PID 1, into which nobody looks'
  if (name === '') return { gets: 'own', because: 'what the kernel says of a process', mayEnter: true }
  if (links.includes(name) || (linkFolders.includes(name) && below !== undefined)) {
    if (whose === 'first') return { gets: 'closed', because, mayEnter: false }
    return name === 'root' ? { link: '/' } : { gets: 'own', because, mayEnter: true }
  }
  const found = look(join('/proc/self', ...names))
  if (found === null) return absent
  const isInner = whose === 'first' && inner.includes(name)
  const [mayRead, mayWrite] = isInner ? [false, false] : bitsOf(found, whose === 'own' ? 6 : 0)
  const isFolder = found.isDirectory()
  if (mayRead || mayWrite)
    return { gets: mayWrite && !isFolder ? 'write' : 'read', because, mayEnter: isFolder }
  return { gets: 'closed', because, mayEnter: false }
}

const bitsOf = ({ mode }: Stats, shift: number): readonly [read: boolean, write: boolean] => [
  ((mode >> shift) & 4) === 4,
  ((mode >> shift) & 2) === 2,
]

const look = (path: string): Stats | null => lstatSync(path, { throwIfNoEntry: false }) ?? null
