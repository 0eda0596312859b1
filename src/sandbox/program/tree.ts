// A folder tree as it was when it was trusted: one digest, and the facts that say cheaply whether it may have changed.
import { createHash } from 'node:crypto'
import {
  closeSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statfsSync,
  type BigIntStats,
} from 'node:fs'
import { inexactName, isDoubtful, isExactLink } from '../../lib/exact-name.ts'
import { ownTurn } from '../../lib/long-text.ts'
import { isMissing } from '../../lib/missing.ts'

/** What one name of a tree is. */
export interface TreeEntry {
  readonly kind: 'file' | 'directory' | 'link'
  readonly uid: number
  readonly gid: number
  /** Permission bits */
  readonly mode: number
  /** Device, inode, size, times, owner and mode in one short text: trees are large, and this is only compared */
  readonly facts: string
  /** sha256 of a file's content in hex, a link's text, a folder's sorted names joined by slashes */
  readonly content: string
}

/** A tree by its real root, and its entries by their path below it; the root's own is the empty one. */
export interface Tree {
  readonly root: string
  readonly entries: ReadonlyMap<string, TreeEntry>
  /** Length of all files together */
  readonly bytes: number
}

/** How much a tree may be, and whether every user of the machine must be able to read all of it. */
export interface Bound {
  readonly entries: number
  /** Of all files together */
  readonly bytes: number
  readonly isOpen: boolean
}

/** How a tree is read; its end, where nobody waits for it any more, is the signal's reason. */
export interface Reading {
  readonly bound: Bound
  readonly signal?: AbortSignal | undefined
}

/** Where a tree holds what can't be pinned, and what that is. */
export class UnpinnableError extends Error {
  override readonly name = 'UnpinnableError'
  readonly path: string
  readonly mend: string

  constructor(path: string, what: string, mend = 'remove it, or install afresh') {
    super(what)
    this.path = path
    this.mend = mend
  }
}

/** The most that any tree may be; one of so many entries is looked through in about a second. */
export const anyTree: Bound = { entries: 400_000, bytes: 8 * 1024 ** 3, isOpen: false }

/**
 * Reads a whole tree.
 *
 * Reading is synchronous, in slices of two milliseconds with the event loop in between: file for file that costs a
 * fifth of what promises do, and delays nobody. Throws UnpinnableError where an entry is a device, socket or pipe, has
 * a name or is a link that is not UTF-8, or changes while it is read; and before it is opened where it is the kernel's own (reading
 * some of those ends never, or waits) or more than can be read.
 */
export const readTree = async (
  root: string,
  { bound, signal }: Reading = { bound: anyTree },
): Promise<Tree> => {
  const entries = new Map<string, TreeEntry>()
  const waiting = ['']
  const slice = new Slice(signal)
  const bounds = new Bounds(root, bound)
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (slice.isOver()) await slice.next()
    const entry = await readEntry(root, path, slice, bounds)
    entries.set(path, entry)
    if (entry.kind === 'directory')
      for (const name of namesOf(entry)) waiting.push(path === '' ? name : `${path}/${name}`)
    if (entries.size > bound.entries) throw tooMany(root, bound)
  }
  return { root, entries, bytes: bounds.bytes }
}

/** Throws UnpinnableError, as reading it within that bound would have. */
export const expectWithin = ({ root, entries, bytes }: Tree, bound: Bound): void => {
  if (entries.size > bound.entries) throw tooMany(root, bound)
  if (bytes > bound.bytes) throw tooLong(root, bound)
  for (const [path, { kind, mode }] of entries) expectOpen(`${root}/${path}`, kind, mode, bound)
}

/**
 * Looks at every entry of a tree again, reading only what may have changed.
 *
 * Returns the tree, renewed where facts differ and content does not, or the first path whose content, kind, execute
 * permission or existence differs. Throws UnpinnableError as `readTree` does, and the signal's reason where nobody waits any more.
 */
export const recheckTree = async (
  tree: Tree,
  signal?: AbortSignal,
): Promise<Tree | { readonly changed: string }> => {
  const renewed = new Map<string, TreeEntry>()
  const slice = new Slice(signal)
  const bounds = new Bounds(tree.root, anyTree)
  for (const [path, entry] of tree.entries) {
    if (slice.isOver()) await slice.next()
    const found = lstatOf(tree.root, path)
    if (found === null) return { changed: path }
    if (factsOf(found) === entry.facts) continue
    const now = await readEntry(tree.root, path, slice, bounds)
    if (now.kind !== entry.kind || (now.kind === 'file' && isExecutable(now) !== isExecutable(entry)))
      return { changed: path }
    if (now.content !== entry.content) return { changed: firstDifference(path, entry, now) }
    renewed.set(path, now)
  }
  return renewed.size === 0 ? tree : { ...tree, entries: new Map([...tree.entries, ...renewed]) }
}

/**
 * Returns the digest of a tree: sha256, in hex, over its entries sorted by path (UTF-16 code units), each as
 * `<f|x|d|l> NUL <path> NUL <content's sha256 | link's text | nothing> LF`, an executable file being `x`.
 */
export const digestTree = async ({ entries }: Tree): Promise<string> => {
  const hash = createHash('sha256')
  const slice = new Slice()
  for (const path of [...entries.keys()].sort()) {
    if (slice.isOver()) await slice.next()
    const entry = entries.get(path)
    if (entry !== undefined) hash.update(`${letterOf(entry)}\0${path}\0${pinnedContent(entry)}\n`)
  }
  return hash.digest('hex')
}

const letterOf = (entry: TreeEntry): string => {
  if (entry.kind === 'file') return isExecutable(entry) ? 'x' : 'f'
  return entry.kind === 'link' ? 'l' : 'd'
}

// A folder's names are entries themselves.
const pinnedContent = ({ kind, content }: TreeEntry): string => (kind === 'directory' ? '' : content)

const namesOf = ({ content }: TreeEntry): string[] => (content === '' ? [] : content.split('/'))

const firstDifference = (path: string, before: TreeEntry, now: TreeEntry): string => {
  if (before.kind !== 'directory') return path
  const [old, present] = [namesOf(before), namesOf(now)]
  const name =
    present.find((each) => !old.includes(each)) ?? old.find((each) => !present.includes(each)) ?? ''
  return path === '' ? name : `${path}/${name}`
}

const isExecutable = ({ mode }: TreeEntry): boolean => (mode & 0o111) !== 0

const factsOf = ({ dev, ino, size, mtimeNs, ctimeNs, uid, gid, mode }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs, uid, gid, mode].map((fact) => fact.toString(36)).join(' ')

const readEntry = async (root: string, path: string, slice: Slice, bounds: Bounds): Promise<TreeEntry> => {
  const full = path === '' ? root : `${root}/${path}`
  const found = lstatOf(root, path)
  if (found === null) throw new UnpinnableError(full, 'vanished while the tree was read')
  const mode = Number(found.mode & 0o7777n)
  bounds.take(full, found)
  const facts = { facts: factsOf(found), uid: Number(found.uid), gid: Number(found.gid), mode }
  if (found.isDirectory()) return { ...facts, kind: 'directory', content: namesIn(full).join('/') }
  if (found.isSymbolicLink()) return { ...facts, kind: 'link', content: textOf(full) }
  if (!found.isFile()) throw new UnpinnableError(full, 'is a device, socket or pipe')
  const content = await digestSlowly(full, found.size, slice)
  const after = lstatOf(root, path)
  if (after === null || factsOf(after) !== facts.facts)
    throw new UnpinnableError(full, 'changed while it was read')
  return { ...facts, kind: 'file', content }
}

/** Sorted. Two names that are not UTF-8 may be one as text, and what only one of them is would be pinned for both. */
const namesIn = (folder: string): readonly string[] => {
  const names = readdirSync(folder)
  const inexact = names.some(isDoubtful) ? inexactName(folder) : null
  if (inexact !== null) throw new UnpinnableError(`${folder}/${inexact}`, 'has a name that is not UTF-8')
  return names.sort()
}

const textOf = (link: string): string => {
  const text = readlinkSync(link)
  if (isDoubtful(text) && !isExactLink(link))
    throw new UnpinnableError(link, 'is a link to a path that is not UTF-8')
  return text
}

const lstatOf = (root: string, path: string): BigIntStats | null => {
  try {
    return lstatSync(path === '' ? root : `${root}/${path}`, { bigint: true })
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Reads no further than one piece behind what its size was. */
const digestSlowly = async (path: string, size: bigint, slice: Slice): Promise<string> => {
  const hash = createHash('sha256')
  const file = openSync(path, 'r')
  try {
    let left = Number(size)
    for (let bytes = readSync(file, slice.buffer); bytes > 0; bytes = readSync(file, slice.buffer)) {
      hash.update(slice.buffer.subarray(0, bytes))
      left -= bytes
      if (left < 0) break // it grows, and is seen to have changed
      if (slice.isOver()) await slice.next()
    }
  } finally {
    closeSync(file)
  }
  return hash.digest('hex')
}

/** What of a tree may be opened, told by what is known of it before. */
class Bounds {
  readonly #root: string
  readonly #bound: Bound
  /** File systems that keep files */
  readonly #devices = new Set<bigint>()
  /** Length of the files so far */
  bytes = 0

  constructor(root: string, bound: Bound) {
    this.#root = root
    this.#bound = bound
  }

  take(path: string, found: BigIntStats): void {
    if (!found.isFile() && !found.isDirectory()) return
    expectOpen(path, found.isFile() ? 'file' : 'directory', Number(found.mode), this.#bound)
    if (!this.#devices.has(found.dev)) {
      if (statfsSync(path).blocks === 0)
        throw new UnpinnableError(path, 'is on a file system of the kernel’s own, which holds no code')
      this.#devices.add(found.dev)
    }
    if (!found.isFile()) return
    this.bytes += Number(found.size)
    if (this.bytes > this.#bound.bytes) throw tooLong(this.#root, this.#bound)
  }
}

const expectOpen = (path: string, kind: TreeEntry['kind'], mode: number, { isOpen }: Bound): void => {
  if (!isOpen || kind === 'link') return
  const bits = kind === 'directory' ? 0o005 : 0o004
  if ((mode & bits) !== bits)
    throw new UnpinnableError(path, 'is not for every user to read', 'launch only what is')
}

const tooMany = (root: string, { entries }: Bound): UnpinnableError =>
  new UnpinnableError(root, `holds more than ${entries} entries`, 'leave out what the code does not need')

const tooLong = (root: string, { bytes }: Bound): UnpinnableError =>
  new UnpinnableError(
    root,
    `holds more than ${Math.floor(bytes / 1024 ** 2)} MiB`,
    'leave out what the code does not need',
  )

/** A moment of work, after which everybody else has a turn; of all that is worked on so, one has its slice in each. */
class Slice {
  static readonly lengthMs = 2
  /** For one read and its digestion, between which nobody else has a turn */
  readonly buffer = Buffer.allocUnsafeSlow(1 << 17)
  readonly #signal: AbortSignal | undefined
  #start = performance.now()

  constructor(signal?: AbortSignal) {
    this.#signal = signal
  }

  isOver(): boolean {
    return performance.now() - this.#start > Slice.lengthMs
  }

  /** Throws the signal's reason where nobody waits any more. */
  async next(): Promise<void> {
    await ownTurn()
    this.#signal?.throwIfAborted()
    this.#start = performance.now()
  }
}
