// Whose act it is, as records say it: the principal that it counts for, and who connected.
import type { Peer } from '../../schema/governor.ts'
import type { Caller } from '../../supervisor/ports.ts'

/** Members of every record of what somebody did. */
export interface Actor {
  readonly by: string
  readonly peer: Peer
}

export const actor = ({ principal }: Caller): Actor => ({ by: principal.id, peer: principal.attributes })
