// A wall clock that has stood for an hour, as far as whoever reads the note of it can tell.
import { readFileSync, writeFileSync } from 'node:fs'
import { uptime } from 'node:os'

/** Writes the note; `aheadMs` is how far the clock was from what it is now, and `agoMs` since when. */
export function clockStood(path: string, { aheadMs = 0, agoMs = 3_600_000 } = {}): void {
  const countMs = uptime() * 1000
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const seen = { boot, aheadMs: Date.now() + aheadMs - countMs, sinceMs: countMs - agoMs }
  writeFileSync(path, JSON.stringify(seen), { mode: 0o600 })
}
