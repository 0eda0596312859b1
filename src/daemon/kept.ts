// What a running daemon keeps from its start: a reload that would change it is refused, by name.
import { SallyportError } from '../errors.ts'
import type { Settings } from '../schema/settings.ts'

/** Throws ERR_CONFIG_RESTART where the settings differ in what takes a restart. */
export function expectKept(now: Settings, next: Settings, isSeparationSame: boolean): void {
  const isGroupSame = now.hostGroup === next.hostGroup
  const names = [
    ...(isGroupSame ? [] : ['host_group']),
    ...(now.requireSeparation === next.requireSeparation ? [] : ['require_separation']),
    ...(isSeparationSame || !isGroupSame ? [] : ['run_as (it changes the separation of hosts and daemon)']),
    ...(now.journal.durability === next.journal.durability ? [] : ['journal.durability']),
    ...(now.journal.segmentBytes === next.journal.segmentBytes ? [] : ['journal.segment_bytes']),
    ...(now.journal.evidenceBytes === next.journal.evidenceBytes ? [] : ['journal.evidence_bytes']),
    ...(now.journal.keepDays === next.journal.keepDays ? [] : ['journal.keep_days']),
  ]
  if (names.length === 0) return
  throw new SallyportError(
    'ERR_CONFIG_RESTART',
    `${names.join(', ')}: got another value than the daemon was started with, expected the same, since it takes a restart; restart the daemon, or put it back and reload`,
    { settings: names },
  )
}
