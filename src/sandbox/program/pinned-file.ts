// A file as it was when it was trusted: its digest, and the facts that say cheaply whether it may have changed.
import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { lstat, open } from 'node:fs/promises'

/** What changes whenever a file's content does, or the file is another one. */
export interface FileIdentity {
  readonly dev: bigint
  readonly ino: bigint
  readonly size: bigint
  readonly mtimeNs: bigint
  readonly ctimeNs: bigint
}

export interface PinnedFile extends FileIdentity {
  /** Real absolute path */
  readonly path: string
  /** Of the content, in hex */
  readonly sha256: string
}

/** Returns the facts of a file that make a new digest needed when they differ. */
export const identityOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): FileIdentity => {
  return { dev, ino, size, mtimeNs, ctimeNs }
}

/** Says whether a file is as it was, by its facts alone. */
export const isSameFile = (one: FileIdentity, other: FileIdentity): boolean =>
  one.dev === other.dev &&
  one.ino === other.ino &&
  one.size === other.size &&
  one.mtimeNs === other.mtimeNs &&
  one.ctimeNs === other.ctimeNs

/** What a file's content was found to be. */
export interface Digested {
  readonly sha256: string
  /** The first of the markers that the content holds, or null */
  readonly marker: string | null
  /** The first bytes, at most 512 */
  readonly head: Buffer
}

const chunkBytes = 1 << 18

/** Reads a file once: returns its digest and, where markers are given, which of them it holds. */
export const digestFile = async (path: string, markers: readonly string[] = []): Promise<Digested> => {
  const hash = createHash('sha256')
  const wanted = markers.map((marker) => ({ marker, bytes: Buffer.from(marker) }))
  const overlap = Math.max(0, ...wanted.map(({ bytes }) => bytes.length - 1))
  // One for the whole file, which may be a hundred MiB: the end of the last chunk, where a marker may begin, and the next.
  const buffer = Buffer.allocUnsafeSlow(overlap + chunkBytes)
  let head: Buffer = Buffer.alloc(0)
  let found: string | null = null
  await using file = await open(path)
  for (let kept = 0; ;) {
    const { bytesRead } = await file.read(buffer, kept, chunkBytes, null)
    if (bytesRead === 0) break
    const seen = buffer.subarray(0, kept + bytesRead)
    const chunk = seen.subarray(kept)
    hash.update(chunk)
    if (head.length < 512) head = Buffer.concat([head, chunk.subarray(0, 512 - head.length)])
    found ??= wanted.find(({ bytes }) => seen.includes(bytes))?.marker ?? null
    kept = Math.min(overlap, seen.length)
    seen.copyWithin(0, seen.length - kept)
  }
  return { sha256: hash.digest('hex'), marker: found, head }
}

/** A file with what reading it once has said. */
export interface Pinned {
  readonly pin: PinnedFile
  readonly digested: Digested
}

/**
 * Returns the digest of a file that stayed the same file while it was read, with its facts, and which of the markers it holds.
 *
 * The facts are taken before and after, so that a change in between is never pinned. Throws what `changed` returns.
 */
export type PinFile = (path: string, changed: () => Error, markers?: readonly string[]) => Promise<Pinned>

export const pinFile: PinFile = async (path, changed, markers = []) => {
  const before = identityOf(await lstat(path, { bigint: true }))
  const digested = await digestFile(path, markers)
  if (!isSameFile(before, await lstat(path, { bigint: true }))) throw changed()
  return { pin: { path, sha256: digested.sha256, ...before }, digested }
}

/** `read` for many servers that share their programs: a file that was read is read again only when its facts differ. */
export const pinFileOnce = (read: PinFile = pinFile): PinFile => {
  const known = new Map<string, Promise<Pinned>>()
  return async (path, changed, markers = []) => {
    const key = JSON.stringify([path, markers])
    // Whatever went wrong for another server is found again for this one, in its own words.
    const before = await known.get(key)?.catch(() => null)
    if (before && isSameFile(before.pin, await lstat(path, { bigint: true }))) return before
    const reading = read(path, changed, markers)
    known.set(key, reading)
    return reading
  }
}
