// Bytes of a file that decides over others, read only when nobody else can have written them.
import { constants } from 'node:fs'
import { lstat, open, type FileHandle } from 'node:fs/promises'
import { SallyportError } from '../errors.ts'
import { followTrusted, type Distrust } from '../lib/trusted-path.ts'

/** Largest configuration or profile file, bytes. */
const mostBytes = 1_048_576

export interface TrustedFile {
  /** Real path, links resolved */
  readonly path: string
  readonly text: string
  /** How many names the file has; more than one is a hard link to something else, perhaps */
  readonly links: number
}

/**
 * Reads a UTF-8 file. Refuses it where it, a folder above it or a link on the way belongs to or can be written by
 * anybody but root and `owners` (ERR_CONFIG_UNSAFE), and where it is no regular file, too large or not UTF-8
 * (ERR_CONFIG_SYNTAX). What is opened must be what was judged.
 */
export async function readTrusted(
  path: string,
  owners: readonly number[],
  limitBytes = mostBytes,
): Promise<TrustedFile> {
  const followed = await followTrusted(path, owners)
  if (!followed.isTrusted) throw await distrusted(path, followed.distrust)
  await using file = await openFile(followed.real)
  const stats = await file.handle.stat({ bigint: true })
  if (stats.ino !== followed.found.ino || stats.dev !== followed.found.dev)
    throw unsafe(path, { place: followed.real, what: 'was replaced while it was read', mend: 'try again' })
  if (!stats.isFile()) throw malformed(path, notRegular, 'a file')
  if (stats.size > limitBytes) throw malformed(path, `${stats.size} bytes`, `at most ${limitBytes} bytes`)
  return {
    path: followed.real,
    text: decode(path, await readAll(file.handle, limitBytes), limitBytes),
    links: Number(stats.nlink),
  }
}

/** Nobody is told to take the mode of a device, a pipe or a socket away: those are no files to begin with. */
async function distrusted(path: string, distrust: Distrust): Promise<SallyportError> {
  const found = await lstat(distrust.place)
  const isPlain = found.isFile() || found.isDirectory() || found.isSymbolicLink()
  return isPlain ? unsafe(path, distrust) : malformed(path, notRegular, 'a file')
}

/** O_NONBLOCK: a FIFO in the file's place must not hold us; O_NOFOLLOW: its links are resolved already. */
async function openFile(path: string): Promise<{ readonly handle: FileHandle } & AsyncDisposable> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  return { handle, [Symbol.asyncDispose]: () => handle.close() }
}

async function readAll(handle: FileHandle, limitBytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(limitBytes + 1)
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}

function decode(path: string, bytes: Buffer, limitBytes: number): string {
  if (bytes.length > limitBytes)
    throw malformed(path, 'a file that grew while it was read', `at most ${limitBytes} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw malformed(path, 'bytes that are not UTF-8', 'UTF-8 text', error)
  }
}

const notRegular = 'something that is not a regular file'

const malformed = (path: string, got: string, expected: string, cause?: unknown): SallyportError =>
  new SallyportError(
    'ERR_CONFIG_SYNTAX',
    `${path}: got ${got}, expected ${expected}`,
    { file: path, got, expected },
    { cause },
  )

const unsafe = (path: string, { place, what, mend }: Distrust): SallyportError =>
  new SallyportError(
    'ERR_CONFIG_UNSAFE',
    `${path}: ${place} ${what}, so somebody else could decide here; mend it: ${mend}`,
    { file: path, path: place, got: what, expected: 'a path that only its owner and root can write', mend },
  )
