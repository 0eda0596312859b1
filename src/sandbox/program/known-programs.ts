// What long programs were found to be, kept from one life of a daemon to the next: a runtime of a hundred MiB takes a third of a
// second to digest, which the first launch of every life would wait for.
import { constants } from 'node:fs'
import { lstat, open, rename, rm, writeFile } from 'node:fs/promises'
import type { Logger } from '../../lib/logger.ts'
import { isMissing } from '../../lib/missing.ts'
import { parseJson } from '../../lib/parse-json.ts'
import type { FileIdentity, Pinned, PinFile } from './pinned-file.ts'
import { identityOf, isSameFile, pinFile } from './pinned-file.ts'

/** Shorter ones are read as soon as looked up. */
const leastBytes = 4n << 20n
/** What changed since may still change within the same tick of the file system's clock, which is two seconds at most (FAT). */
const settledMs = 10_000
const mostPrograms = 32
const mostFileBytes = 1 << 17

/** One program, as the file has it: what its facts were, and what reading it had said. */
interface Kept {
  readonly path: string
  readonly markers: readonly string[]
  /** Device, inode, size, mtime and ctime in ns */
  readonly facts: readonly string[]
  readonly sha256: string
  readonly marker: string | null
  /** In base64 */
  readonly head: string
}

/**
 * `pinFile` that reads a long program again only where device, inode, size, mtime or ctime differ from when it was read last, be it
 * by a daemon that ended since. It keeps the last 32 in a file of the daemon's own folder. That file is a saving, and nobody
 * fails with it: where it can't be read, is not the daemon's own, or can't be written, programs are read.
 */
export const pinFileKept = (path: string, log: Logger): PinFile => {
  let known: Promise<readonly Kept[]> | null = null
  let written: Promise<void> = Promise.resolve()
  const keep = async (kept: Kept): Promise<void> => {
    const others = (await (known ?? [])).filter(({ path: other, markers }) => !isOf(kept, other, markers))
    const all = [kept, ...others].slice(0, mostPrograms)
    known = Promise.resolve(all)
    // Where another process is at it, its own is as good.
    await writeFile(draftOf(path), JSON.stringify({ version: 1, programs: all }), { mode: 0o600, flag: 'wx' })
    await rename(draftOf(path), path)
  }
  return async (file, changed, markers = []) => {
    const before = identityOf(await lstat(file, { bigint: true }))
    if (before.size < leastBytes) return pinFile(file, changed, markers)
    known ??= readKept(path).catch((error: unknown) => {
      log.warn({ path, err: error }, 'what programs were found to be is not used: they are read again')
      return []
    })
    const found = (await known).find((one) => isOf(one, file, markers))
    if (found !== undefined && isSameFile(identityFrom(found), before)) return pinnedFrom(found)
    const began = Date.now()
    const pinned = await pinFile(file, changed, markers)
    if (pinned.pin.ctimeNs / 1_000_000n < BigInt(began - settledMs)) {
      written = written
        .then(() => keep(keptFrom(pinned, markers)))
        .catch((error: unknown) => {
          log.debug({ path, err: error }, 'what a program was found to be is not kept')
        })
      await written
    }
    return pinned
  }
}

const draftOf = (path: string): string => `${path}.draft`

const isOf = (one: Kept, path: string, markers: readonly string[]): boolean =>
  one.path === path && one.markers.join('\0') === markers.join('\0')

/** Throws where the file is not the daemon's own, or not what `keep` writes. */
const readKept = async (path: string): Promise<readonly Kept[]> => {
  try {
    await rm(draftOf(path), { force: true }) // of whoever was killed as it wrote; who still writes does so again another time
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { uid, mode, size } = await file.stat()
    if (uid !== process.getuid?.() || (mode & 0o022) !== 0 || size > mostFileBytes)
      throw new Error(`it belongs to uid ${uid}, has mode ${(mode & 0o7777).toString(8)} and ${size} bytes`)
    const { version, programs } = parseJson(await file.readFile('utf8')) as Record<string, unknown>
    if (version !== 1 || !Array.isArray(programs) || !programs.every(isKept))
      throw new Error('it holds something else')
    return programs
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

const isKept = (value: unknown): value is Kept => {
  if (typeof value !== 'object' || value === null) return false
  const { path, markers, facts, sha256, marker, head } = value as Record<string, unknown>
  return (
    [path, sha256, head].every((text) => typeof text === 'string') &&
    /^[0-9a-f]{64}$/.test(sha256 as string) &&
    (marker === null || typeof marker === 'string') &&
    isTexts(markers) &&
    isTexts(facts) &&
    facts.length === 5 &&
    facts.every((fact) => /^-?[0-9]{1,20}$/.test(fact))
  )
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const identityFrom = ({ facts }: Kept): FileIdentity => {
  const [dev = 0n, ino = 0n, size = 0n, mtimeNs = 0n, ctimeNs = 0n] = facts.map(BigInt)
  return { dev, ino, size, mtimeNs, ctimeNs }
}

const pinnedFrom = (kept: Kept): Pinned => ({
  pin: { path: kept.path, sha256: kept.sha256, ...identityFrom(kept) },
  digested: { sha256: kept.sha256, marker: kept.marker, head: Buffer.from(kept.head, 'base64') },
})

const keptFrom = ({ pin, digested }: Pinned, markers: readonly string[]): Kept => ({
  path: pin.path,
  markers,
  facts: [pin.dev, pin.ino, pin.size, pin.mtimeNs, pin.ctimeNs].map(String),
  sha256: pin.sha256,
  marker: digested.marker,
  head: digested.head.toString('base64'),
})
