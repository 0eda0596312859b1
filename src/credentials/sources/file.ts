// A secret in a file of the daemon's user.
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { unlessAborted } from '../../lib/deadline.ts'
import { followTrusted } from '../../lib/trusted-path.ts'
import { sourceFailed } from './failure.ts'
import { onThread } from './threads.ts'

/** Bytes that a source may give */
export const sourceLimit = 65_536

/**
 * Returns what the file holds; rejects once the signal is aborted, whatever the file's share does: what comes of it later is
 * zeroed.
 */
export const readSecretFile = async (
  credential: string,
  path: string,
  uid: number,
  signal: AbortSignal,
): Promise<Buffer> => {
  const late = (): Error =>
    sourceFailed(credential, `file ${path} was not read in time: what it is on may hang`)
  const reading = onThread(path, signal, () => readNow(credential, path, uid))
  try {
    return await unlessAborted(reading, signal)
  } catch (error) {
    if (!signal.aborted) throw error
    void reading.then((bytes) => bytes.fill(0)).catch(() => undefined)
    throw late()
  }
}

/**
 * Without one line end.
 *
 * Nobody but root and the daemon's user may be able to change the file or any folder or link on the way, and nobody else
 * to read it: what others know is no secret. It is opened without following a link and compared with what was judged, so
 * that nothing can be put in its place in between.
 */
const readNow = async (credential: string, path: string, uid: number): Promise<Buffer> => {
  const failed = (fault: string): Error => sourceFailed(credential, fault)
  const place = await followTrusted(path, [uid]).catch((error: unknown) => {
    throw failed(`file ${path}: ${errno(error)}`)
  })
  if (!place.isTrusted) {
    const { place: where, what, mend } = place.distrust
    throw failed(`file ${path} is not safe: ${where} ${what}; ${mend}`)
  }
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
  await using file = await open(place.real, flags).catch((error: unknown) => {
    throw failed(`file ${path}: ${errno(error)}`)
  })
  const found = await file.stat({ bigint: true })
  if (found.dev !== place.found.dev || found.ino !== place.found.ino)
    throw failed(`file ${path} was replaced while it was opened`)
  if (!found.isFile()) throw failed(`file ${path} is no regular file`)
  if ((found.mode & 0o077n) !== 0n)
    throw failed(
      `file ${path} has mode ${(found.mode & 0o777n).toString(8)}, which others may use; chmod 600 ${path}`,
    )
  const bytes = Buffer.alloc(sourceLimit + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length, null)
    length += bytesRead
    if (bytesRead === 0 || length > sourceLimit) break
  }
  if (length > sourceLimit) throw failed(`file ${path} holds more than ${sourceLimit} bytes`)
  return bytes.subarray(0, length)
}

const errno = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'it could not be opened'
