// What one control connection may have of the daemon.
import { maxLineBytes } from './line-buffer.ts'

/** Bounds of one connection. */
export interface ConnectionLimits {
  /** Longest line, bytes */
  readonly lineBytes: number
  /** Calls of tools that may be unanswered at once */
  readonly callsInFlight: number
  /** Other requests that may be */
  readonly requestsInFlight: number
  /** Streams (events, logs, records, questions) that may be followed at once */
  readonly streams: number
  /** Answers that wait for a peer that does not read, bytes; beyond it the connection is cut */
  readonly unreadBytes: number
  /** Time that answers get after the peer said it will send no more, ms */
  readonly lingerMs: number
}

/** What a host is given unless a test says otherwise. */
export const defaultLimits: ConnectionLimits = {
  lineBytes: maxLineBytes,
  callsInFlight: 1024,
  requestsInFlight: 64,
  streams: 8,
  unreadBytes: 64 * 1024 * 1024,
  lingerMs: 5000,
}
