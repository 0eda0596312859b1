// The states of an instance and everything that may happen in each.
import type { HostState, InstanceState } from '../../rpc/protocol.ts'

/**
 * What can happen to an instance:
 * - `start` a launch begins; `ready` the server answered the handshake
 * - `drain` intake is closed and stdin is at its end; `stop` the server is being made to end
 * - `ended` it is proven that nothing is left
 * - `back-off`, `fail`, `need-auth` it was lost or never came up: try later, not at all, not without a credential
 * - `quarantine` and `release`, `disable` and `enable` come from policy and the operator
 */
export type InstanceEvent =
  | 'start'
  | 'ready'
  | 'drain'
  | 'stop'
  | 'ended'
  | 'back-off'
  | 'fail'
  | 'need-auth'
  | 'quarantine'
  | 'release'
  | 'disable'
  | 'enable'

type Row = Readonly<Partial<Record<InstanceEvent, InstanceState>>>

/** State -> event -> next state. A pair that is not here is a mistake of ours. */
export const transitions = {
  stopped: {
    start: 'starting',
    // A process that was of no use was ended by the ladder, and what follows is decided then.
    'back-off': 'backoff',
    fail: 'failed',
    'need-auth': 'needs-auth',
    quarantine: 'quarantined',
    disable: 'disabled',
  },
  starting: {
    ready: 'ready',
    drain: 'draining',
    stop: 'stopping',
    ended: 'stopped',
    'back-off': 'backoff',
    fail: 'failed',
    'need-auth': 'needs-auth',
    quarantine: 'quarantined',
  },
  ready: {
    drain: 'draining',
    stop: 'stopping',
    ended: 'stopped',
    'back-off': 'backoff',
    fail: 'failed',
    quarantine: 'quarantined',
  },
  draining: { stop: 'stopping', ended: 'stopped' },
  stopping: { ended: 'stopped', fail: 'failed' },
  backoff: {
    start: 'starting',
    ended: 'stopped',
    fail: 'failed',
    quarantine: 'quarantined',
    disable: 'disabled',
  },
  failed: { start: 'starting', ended: 'stopped', quarantine: 'quarantined', disable: 'disabled' },
  quarantined: { release: 'stopped', disable: 'disabled' },
  disabled: { enable: 'stopped' },
  'needs-auth': { start: 'starting', ended: 'stopped', quarantine: 'quarantined', disable: 'disabled' },
} as const satisfies Record<InstanceState, Row>

/** An event came in a state that has no place for it: a mistake of ours, never of a server's. */
export class InvalidTransition extends Error {
  override readonly name = 'InvalidTransition'
  readonly from: InstanceState
  readonly event: InstanceEvent

  constructor(from: InstanceState, event: InstanceEvent) {
    super(`an instance that is ${from} cannot ${event}`)
    this.from = from
    this.event = event
  }
}

/** The state that follows, or throws `InvalidTransition`. */
export function next(from: InstanceState, event: InstanceEvent): InstanceState {
  const row: Row = transitions[from]
  const to = row[event]
  if (to === undefined) throw new InvalidTransition(from, event)
  return to
}

const shown = {
  starting: 'pending',
  ready: 'connected',
  draining: 'connected',
  stopping: 'pending',
  stopped: 'pending',
  backoff: 'pending',
  failed: 'failed',
  quarantined: 'failed',
  disabled: 'disabled',
  'needs-auth': 'needs-auth',
} as const satisfies Record<InstanceState, HostState>

/** What hosts see of a state. */
export const hostState = (state: InstanceState): HostState => shown[state]

/** Whether something of it may run. */
export const hasProcess = (state: InstanceState): boolean =>
  state === 'starting' || state === 'ready' || state === 'draining' || state === 'stopping'
