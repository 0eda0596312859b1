// What an MCP client of Sallyport's own is given, and what it gives back.
import type { SallyportError } from '../../errors.ts'
import type { Gate } from '../../schema/gate.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Guests } from '../shared/guests.ts'
import type { Running } from '../ports.ts'
import type { Answer } from './answer.ts'

/** Whoever waits for an answer. */
export interface Waiter {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: SallyportError) => void
}

export interface ClientOptions {
  readonly process: Running
  readonly server: ServerSettings
  readonly gate: Gate
  /** The server says that what it lists is not what it was */
  readonly listChanged: () => void
  readonly note: (type: string, detail: Readonly<Record<string, unknown>>, error?: SallyportError) => void
  /** True where no handshake is to tell that the server is of the later era */
  readonly isModern?: boolean
  /** Hears notifications of progress and logs, as they came, in latin1 reading with their line feed */
  readonly heard?: (line: string) => void
  /** Whose process it is, too */
  readonly guests?: Guests | null
}

export interface RequestOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** What whoever waits is told when the time is over, where that is not that the method was not answered */
  readonly late?: SallyportError
}
