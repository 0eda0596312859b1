// What happens to a server's processes and is evidence, on record; most of what happens to them is only told.
import type { Recorder } from '../../call/ports.ts'
import type { Happening } from '../../supervisor/ports.ts'

/**
 * Records that output of a process is no longer kept; where the journal can't be written, that tells of itself. The recorder is
 * asked for only then: a daemon tells of what it found in its journal before there is one.
 */
export function recordInstanceEvent(recorder: () => Pick<Recorder, 'record'>, event: Happening): void {
  if (event.type !== 'logs/dropped') return
  const { server, instance, principal, detail } = event
  void recorder()
    .record('logs.dropped', { server, instance, principal, ...detail })
    .catch(() => undefined)
}
