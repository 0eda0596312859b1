// What a session is made of.
import type { ServerSettings } from '../schema/settings.ts'
import type { Lost } from './life.ts'
import type { LogRing } from './log-ring.ts'
import type { Caller, Ports } from './ports.ts'
import type { Verdicts } from './probe.ts'

export interface SessionOptions {
  readonly server: ServerSettings
  readonly caller: Caller
  readonly ports: Pick<Ports, 'gate' | 'emit' | 'launch'>
  readonly logs: LogRing
  /** What is known about this server's era */
  readonly verdicts: Verdicts
  /** Told of an end that nobody asked for */
  readonly lost: (lost: Lost) => void
}
