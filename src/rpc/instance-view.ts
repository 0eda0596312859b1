// What is told of one process of a server.
import type { InstanceId } from '../lib/ids.ts'

export type InstanceState =
  | 'starting'
  | 'ready'
  | 'draining'
  | 'stopping'
  | 'stopped'
  | 'backoff'
  | 'failed'
  | 'quarantined'
  | 'disabled'
  | 'needs-auth'

interface LimitView {
  readonly limit: number
  readonly enforced_by: string
}

export interface InstanceView {
  readonly id: InstanceId
  readonly state: InstanceState
  readonly purpose: 'session' | 'control' | 'call' | 'shared'
  readonly pid: number | null
  readonly started_at: string | null
  /** For how long its process has run, whatever was made of the wall clock meanwhile; null without one */
  readonly up_ms: number | null
  /** Starts that followed a loss: it had ended unasked, or its start had failed */
  readonly restarts: number
  readonly principal: string
  /** Attached sessions that it serves, where they share it; otherwise null */
  readonly sessions: number | null
  /** Processes that left the server's tree, as daemons do, and live: children of PID 1 beside the server; null where nobody sees */
  readonly orphans: number | null
  readonly limits: Readonly<Record<'memory' | 'pids' | 'cpu' | 'files' | 'tmp', LimitView>> | null
  /** Why it is where it is: the last error or exit, of what was stopped why that was and how it ended; in one line */
  readonly reason: string | null
  /** In `backoff`, when it is started again by itself; else null */
  readonly next_try_at: string | null
}
