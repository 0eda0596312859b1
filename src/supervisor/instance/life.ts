// What an instance is doing, how one is lost, and what may become of it then.
import { catalogue, SallyportError } from '../../errors.ts'
import type { Due } from '../../lib/due.ts'
import { isShortage } from '../../lib/missing.ts'
import type { InstanceView } from '../../rpc/protocol.ts'
import { mayPass } from '../../sandbox/docker/engine-failure.ts'
import type { SandboxExit, SandboxProcess } from '../../sandbox/driver.ts'

/** What an instance is doing; each state has only its own data. */
export type Life =
  | { readonly state: 'starting'; readonly launch: AbortController; readonly process: SandboxProcess | null }
  | { readonly state: 'ready'; readonly process: SandboxProcess; readonly since: number }
  | {
      readonly state: 'draining' | 'stopping'
      readonly process: SandboxProcess | null
      readonly reason: string
    }
  | { readonly state: 'stopped'; readonly reason: string | null }
  | { readonly state: 'backoff'; readonly reason: string; readonly next: Due }
  | { readonly state: 'failed' | 'quarantined' | 'disabled' | 'needs-auth'; readonly reason: string }

/** An end that nobody asked for. */
export interface Lost {
  readonly reason: string
  /** How long it had been ready, ms; null when it never was */
  readonly readyMs: number | null
  readonly retryable: boolean
  /** True where the machine was short of something, or its engine was away: that is held against nobody */
  readonly isNoTry?: boolean
  /** True where a source of its secrets failed: without an operator it will fail again */
  readonly needsAuth?: boolean
  /** How the server ended, or null when it never ran */
  readonly exit: SandboxExit | null
}

/** What becomes of an instance that was lost. */
export type Aftermath =
  | { readonly event: 'ended' | 'fail' | 'quarantine' | 'need-auth' }
  | { readonly event: 'back-off'; readonly next: Due }

/** When it is started again by itself; null where it is not. */
export const nextTryAt = (life: Life): string | null =>
  life.state === 'backoff' ? life.next.at.toISOString() : null

/** The limits that hold on a process, as people see them. */
export function limitsOf({ spec, enforcedBy }: SandboxProcess): InstanceView['limits'] {
  const { limits } = spec
  return {
    memory: { limit: limits.memoryBytes, enforced_by: enforcedBy.memory },
    pids: { limit: limits.pids, enforced_by: enforcedBy.pids },
    cpu: { limit: limits.cpu, enforced_by: enforcedBy.cpu },
    files: { limit: limits.openFiles, enforced_by: enforcedBy.files },
    tmp: { limit: limits.tmpBytes, enforced_by: enforcedBy.tmp },
  }
}

const engineAway: ReadonlySet<string> = new Set(['ERR_ENGINE_UNREACHABLE', 'ERR_ENGINE_TIMEOUT'])

/** Whether a launch failed for want of descriptors, memory, processes or room, or of the engine that its container is for. */
export const isNoTry = (error: SallyportError): boolean => isShortage(error) || engineAway.has(error.code)

/** A launch that failed, as the loss of what never was ready. */
export const lostLaunch = (error: SallyportError): Lost => ({
  reason: String(error.details['reason'] ?? error.message),
  readyMs: null,
  retryable: catalogue[error.code].retryable || isNoTry(error) || mayPass(error),
  isNoTry: isNoTry(error),
  needsAuth: error.code === 'ERR_CREDENTIAL_SOURCE' || error.code === 'ERR_CREDENTIAL_REFUSED',
  exit: null,
})

/** Why a launch is not gone on with, for whoever waits for it. */
export const calledOff = (server: string, reason: string): SallyportError =>
  new SallyportError('ERR_SERVER_UNAVAILABLE', `mcp server ${server} is unavailable: ${reason}`, {
    server,
    reason,
  })
