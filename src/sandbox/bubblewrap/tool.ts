// Which bubblewrap this machine has, and whether it may be used.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { isMissing, isShortage, shortageTold } from '../../lib/missing.ts'
import { atOnce, followTrusted } from '../../lib/trusted-path.ts'

/** A bubblewrap that was found. */
export interface Bubblewrap {
  readonly path: string
  /** As it says itself, e.g. `0.8.0` */
  readonly version: string
  /** Why it can't be used and how to mend it, or null */
  readonly refusal: { readonly cause: string; readonly mend: string } | null
}

/** Where packages put it. Never the caller's PATH. */
const places = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/run/current-system/sw/bin/bwrap']
const oldest = [0, 8] as const

/**
 * Returns the first bubblewrap of the machine, or null where there is none.
 *
 * One with the setuid bit is refused: it would do what it is told with root's rights where a user namespace should bound it.
 * So is one older than 0.8, and one that somebody else could replace. Throws where there is nothing to ask it with.
 */
export async function findBubblewrap(candidates: readonly string[] = places): Promise<Bubblewrap | null> {
  for (const candidate of candidates) {
    const place = await followTrusted(candidate, [process.geteuid?.() ?? 0], atOnce).catch(
      (error: unknown) => {
        if (isMissing(error)) return null
        throw error
      },
    )
    if (place === null) continue
    if (!place.isTrusted) {
      const { place: where, what, mend } = place.distrust
      return { path: candidate, version: 'not asked', refusal: { cause: `${where} ${what}`, mend } }
    }
    // Judged before it runs: asking a setuid program for its version would already run it as root
    if ((place.found.mode & 0o4000n) !== 0n) {
      const refusal = { cause: `${candidate} has the setuid bit`, mend: `as root: chmod u-s ${candidate}` }
      return { path: candidate, version: 'not asked', refusal }
    }
    return judgeVersion(candidate, await askVersion(candidate))
  }
  return null
}

async function askVersion(path: string): Promise<string> {
  const asked = await promisify(execFile)(path, ['--version'], { env: {}, timeout: 2000 }).catch(unlessShort)
  return /^bubblewrap (\d+\.\d+\S*)$/m.exec(asked?.stdout ?? '')?.[1] ?? 'unknown'
}

/** What this machine is short of now says nothing of a version, which is believed for as long as the daemon lives. */
function unlessShort(thrown: unknown): null {
  if (isShortage(thrown)) throw thrown
  const short = shortageTold(String((thrown as { readonly stderr?: unknown }).stderr).trim())
  if (short !== undefined) throw short
  return null
}

function judgeVersion(path: string, version: string): Bubblewrap {
  const [major = -1, minor = -1] = version.split('.').map(Number)
  const isKnown = major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
  if (isKnown) return { path, version, refusal: null }
  const cause = `${path} is version ${version}, expected ${oldest.join('.')} or later`
  return { path, version, refusal: { cause, mend: 'install a later bubblewrap from your distribution' } }
}
