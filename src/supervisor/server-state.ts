// What a server is seen as, whatever of it runs.
import type { HostState, InstanceView } from '../rpc/protocol.ts'
import type { ServerSettings } from '../schema/settings.ts'
import { hostState } from './instance/states.ts'
import { quarantined } from './message/unavailable.ts'

/** Where it stands, and why. */
export interface Standing {
  readonly state: HostState
  readonly reason: string | null
}

interface Seen {
  readonly settings: ServerSettings
  /** Why nothing of it may run, or null */
  readonly haltedFor: string | null
  /** What of it is to be seen */
  readonly instances: readonly InstanceView[]
  /** Why no session starts it now, or null */
  readonly down: Standing | null
}

/** The best that any instance is; a server that only waits to be needed is pending. */
export function serverState({ settings, haltedFor, instances, down }: Seen): Standing {
  const { name, enabled, disabledReason, unenforceable } = settings
  if (!enabled) return { state: 'disabled', reason: disabledReason ?? 'enabled is false' }
  if (unenforceable.length > 0)
    return { state: 'failed', reason: `this version cannot enforce ${unenforceable.join(', ')}` }
  if (haltedFor !== null) return { state: 'failed', reason: quarantined(name, haltedFor) }
  const alive = instances.filter(({ state }) => state !== 'stopped')
  for (const state of ['connected', 'pending', 'needs-auth', 'failed'] as const) {
    const found = alive.find((instance) => hostState(instance.state) === state)
    if (found !== undefined) return { state, reason: found.reason }
  }
  return down ?? { state: 'pending', reason: null }
}
