// What the control protocol says of approvals: the questions that wait, how each ended, and what stands.
import type { CallId } from '../lib/ids.ts'

/** A question that waits for an operator. Hosts never see its id. */
export interface PendingApproval {
  readonly id: string
  readonly call: CallId
  /** Who said it, as the kernel knows it: the pid is who connected, often the shim */
  readonly peer: { readonly uid: number; readonly gid: number; readonly pid: number }
  readonly identity: string
  readonly principal: string
  readonly session: string
  /** Why the rules ask */
  readonly reason: string
  /** At most 200 characters, nothing invisible in them */
  readonly summary: string
  /** How the arguments begin in canonical form, nothing invisible in them */
  readonly text: string
  /** Where `approvals/text` goes on, or null where that is all */
  readonly next: number | null
  /** Characters of the canonical arguments in all */
  readonly length: number
  readonly arguments_digest: string
  readonly bytes_digest: string
  readonly waited_ms: number
  readonly deadline_ms: number
  /** How long a yes to more than this call would stand */
  readonly ttl_ms: number
}

/** An approval that outlives its call. */
export interface StandingApproval {
  readonly id: string
  readonly scope: 'session' | 'policy'
  readonly identity: string
  readonly arguments_digest: string
  /** Of all that the server reads, but for a progress token */
  readonly repeat_digest: string
  readonly principal: string
  readonly session: string
  readonly by: string
  readonly expires_in_ms: number
}

/** How a question ended, or that the yes to it is taken back: that is no yes, and has its scope all the same. */
export interface SettledApproval {
  readonly id: string
  /** Null where its end went by unseen: the reader was too slow for the daemon's memory of events */
  readonly granted: boolean | null
  readonly scope: 'once' | 'session' | 'policy' | null
  readonly by: string | null
  readonly reason: string | null
}
