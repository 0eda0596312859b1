// The wall clock, as what can't be undone may go by it: only once it has stood for a while, and not for the moment in which it was set wrong.
import { readFile, writeFile } from 'node:fs/promises'
import { uptime } from 'node:os'
import { isMissing } from './missing.ts'
import { parseJson } from './parse-json.ts'

/** How far it was from the machine's own count of time, and since when it has been so by that count. */
interface Seen {
  readonly boot: string
  readonly aheadMs: number
  readonly sinceMs: number
}

/** How long a clock has to have stood, ms; whoever asks does so by the hour. */
const standsMs = 1_800_000
/** What it may be off by and still be the same: it is put right bit by bit all the time, ms. */
const sameMs = 300_000

/**
 * Returns the time by the wall clock; null where it did not already say the same half an hour ago, in this boot of the machine. `path`
 * is where that is kept from one process to the next. The count that it is held against goes on while the machine sleeps.
 *
 * Throws where the file can't be read or written.
 */
export const timeThatStands = async (path: string): Promise<number | null> => {
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const [wallMs, countMs] = [Date.now(), uptime() * 1000]
  const aheadMs = wallMs - countMs
  const seen = await seenAt(path)
  const isSame = seen?.boot === boot && Math.abs(seen.aheadMs - aheadMs) < sameMs
  if (isSame && seen.sinceMs <= countMs) return countMs - seen.sinceMs >= standsMs ? wallMs : null
  await writeFile(path, JSON.stringify({ boot, aheadMs, sinceMs: countMs } satisfies Seen), { mode: 0o600 })
  return null
}

/** What is no such note, or half of one, counts as none: the clock has to stand anew. */
const seenAt = async (path: string): Promise<Seen | null> => {
  try {
    const { boot, aheadMs, sinceMs } = (parseJson(await readFile(path, 'utf8')) ?? {}) as Partial<Seen>
    return typeof boot === 'string' && typeof aheadMs === 'number' && typeof sinceMs === 'number'
      ? { boot, aheadMs, sinceMs }
      : null
  } catch (error) {
    if (error instanceof SyntaxError || isMissing(error)) return null
    throw error
  }
}
