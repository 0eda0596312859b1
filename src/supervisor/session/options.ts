// What a session is made of, and where it can be.
import type { ServerSettings } from '../../schema/settings.ts'
import type { SallyportError } from '../../errors.ts'
import type { Aftermath, Lost } from '../instance/life.ts'
import type { LogRing } from '../instance/log-ring.ts'
import { noHandshake } from '../message/unavailable.ts'
import type { Caller, Ports } from '../ports.ts'
import type { Verdicts } from '../message/probe.ts'
import type { Questions } from '../questions/questions.ts'
import type { SharedDoor } from '../shared/serving.ts'
import type { Attempt } from './attempts.ts'
import type { TaskIds } from '../lanes/tasks.ts'

export interface SessionOptions {
  readonly server: ServerSettings
  readonly caller: Caller
  readonly ports: Pick<Ports, 'gate' | 'governor' | 'emit' | 'launch' | 'pools'>
  /** Most tools that may be accepted of the server */
  readonly toolLimit: number
  readonly logs: LogRing
  /** What is known about this server's era */
  readonly verdicts: Verdicts
  /** Told of an end that nobody asked for */
  readonly lost: (lost: Lost) => void
  /** Its part in what this caller's sessions have tried of the server, or null where nobody counts */
  readonly attempt: Attempt | null
  /** The tasks of this caller at this server */
  readonly tasks: TaskIds
  /** What this server has asked this caller by results */
  readonly questions: Questions
  /** Whether its server runs even for a host that leaves without a word, as a program does that is given no input */
  readonly runsUnasked: boolean
  /** The process that this caller's sessions share, or null: each has its own */
  readonly shared: SharedDoor | null
}

/**
 * Where a session is:
 * - `idle` nothing was said yet, and nothing was started
 * - `probing` a disposable instance has `server/discover`
 * - `starting` an instance is being launched, the host waits
 * - `running`
 * - `ending` nothing more is taken from the host; the server may still speak
 */
export type Phase = 'idle' | 'probing' | 'starting' | 'running' | 'ending' | 'ended'

/** A server that ends by itself with status 0 did what it was there for; where its host had left, it was asked to. */
export function afterLoss(options: SessionOptions, lost: Lost, hasHostLeft: boolean): Aftermath {
  if (lost.needsAuth === true) return { event: 'need-auth' }
  const isDone = lost.exit?.code === 0 && lost.readyMs !== null
  if (!isDone || !hasHostLeft) lose(options, lost)
  return { event: isDone ? 'ended' : 'fail' }
}

/** A server that runs and does not answer the handshake is of no use: a loss like any other. Gives what its session ends with. */
export function unanswered(options: SessionOptions): SallyportError {
  const error = noHandshake(options.server)
  lose(options, { reason: String(error.details['reason']), readyMs: null, retryable: true, exit: null })
  return error
}

/** Counts a loss, by this caller's sessions and by the server. */
export function lose(options: SessionOptions, lost: Lost): void {
  options.attempt?.lost(lost)
  options.lost(lost)
}
