// Settings that are replaced as a whole while others hold them: one reference to what is current, read at every use.
import type { Settings } from '../../schema/settings.ts'

/** Settings whose every member reads as that of whatever `now` returns at that moment; a spread of them is a copy of it. */
export function liveSettings(now: () => Settings): Settings {
  const members = Object.keys(now()).map((key) => [
    key,
    { enumerable: true, get: () => now()[key as keyof Settings] },
  ])
  return Object.defineProperties({}, Object.fromEntries(members)) as Settings
}
