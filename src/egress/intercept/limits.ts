// What one intercepted connection may take.

export interface InterceptLimits {
  /** From the first byte to the end of the handshake, and from there to the end of the first request's head, ms */
  readonly handshakeMs: number
  /** From the end of one exchange to the end of the next request's head, ms */
  readonly idleMs: number
  /** From dialling to the end of the handshake upstream, ms */
  readonly upstreamMs: number
  /** A head either way */
  readonly headBytes: number
  /** Headers of a head either way */
  readonly headers: number
  /** Interim answers (1xx) to one request */
  readonly interim: number
  /** Requests sent ahead of their answers */
  readonly pipelined: number
  /** A body with a credential that keeps its `Content-Length`; longer ones are sent in chunks */
  readonly countedBodyBytes: number
}

export const interceptLimits: InterceptLimits = {
  handshakeMs: 10_000,
  idleMs: 60_000,
  upstreamMs: 15_000,
  headBytes: 65_536,
  headers: 200,
  interim: 16,
  pipelined: 16,
  countedBodyBytes: 1_048_576,
}
