// What the two lanes of a session share: how they speak, what they do with a message, whom they tell.
import type { SallyportError } from '../../errors.ts'
import type { Gate, GovernedRequest } from '../../schema/gate.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Notification, Response } from '../message/envelope.ts'
import type { Conversation, HostRequest } from './conversation.ts'
import type { SessionHolding } from './holding.ts'
import type { MessageId } from '../message/message-id.ts'
import type { Probe } from '../message/probe.ts'
import type { Questions } from '../questions/questions.ts'

/** What becomes of a line: it passes byte for byte, it does not, or another stands in its place. */
export type Verdict = 'pass' | 'drop' | { readonly replacement: string }

/** Lines are in latin1 reading, with their line feed. */
export interface Wire {
  readonly server: ServerSettings
  readonly gate: Gate
  readonly talk: Conversation
  /** Of the era in which the server asks by a result */
  readonly questions: Questions
  /** What is kept for the host */
  readonly holding: SessionHolding
  toHost(line: string): void
  toServer(line: string): void
  /** Something that people should be able to find out; counted, and told ever less often */
  note(type: string, detail: Readonly<Record<string, unknown>>): void
  /** The host said `initialize`: the era of handshakes has begun */
  initializing(): void
  /** The host said `server/discover`; true lets it go to the server */
  probing(probe: Probe): boolean
  /** The server answered one of the host's requests; false keeps the answer from the host */
  answered(request: HostRequest, response: Response): boolean
  /** The server's answer to one of the host's requests can't be read */
  unreadable(request: HostRequest, error: SallyportError): void
  /** The host said `notifications/initialized` */
  initialized(): void
  /** The server says that what it lists has changed */
  listChanged(): void
  /** Takes a request out of the stream until it may be sent, or is answered in the server's stead */
  hold(held: Held): void
  /** Takes a request back that is held: nothing is sent; false when it is not */
  takeBack(id: MessageId): boolean
  /** The host no longer waits for a request that was sent, on its own word or the server's */
  cancelled(request: HostRequest, by: 'host' | 'server'): void
  /** Takes an answer to a request of Sallyport's own; false when it is none */
  own(response: Response): boolean
  /** True for a notification that is not for the host: of a subscription of Sallyport's own, or of one that policy ended */
  hears(notification: Notification): boolean
  /** The server says how a task is, outside of an answer; `params` is its JSON, as it is recorded. False where the host is not to hear of it */
  taskSaid(params: string): boolean
  /** Says no to questions of a task in the host's stead */
  declineTask(task: string, names: readonly string[]): void
  /** True for a task that the host's principal has created */
  ownsTask(id: string): boolean
  /** A person told the server these, which no record of it is to have */
  confide(values: readonly string[]): void
  /** False for instructions that are not the accepted ones */
  introduces(instructions: string): boolean
  /** False for a tool that is not the accepted one */
  shows(tool: unknown): boolean
  /** False for an entry of a list of prompts or templates, a JSON text, that was never compared with what was accepted */
  isKnown(method: string, entry: string): boolean
  /** False where no request of that method could pass, since what is no tool is not what was accepted */
  offers(method: string): boolean
}

/** A request of the host's that is not sent yet. */
export interface Held {
  readonly request: HostRequest
  /** The message, in latin1 reading, with its line feed */
  readonly line: string
  /** What policy is asked; with nothing it only waits until the server's surface is known */
  readonly asks: readonly Ask[]
  readonly lineage: string | null
  /** True when the host asks for a task */
  readonly asksTask: boolean
  /** The literal of the host's progress token, or null */
  readonly progressToken: string | null
}

export interface Ask {
  readonly kind: GovernedRequest['kind']
  readonly subject: string
  readonly arguments: unknown
  /** The request's params as they will be sent */
  readonly bytes: string
  /** What is recorded of them */
  readonly evidence: string
}

/** The one protocol version with batches. */
export const batchVersion = '2025-03-26'

/** Joins what is left of a batch; `all` elements were judged, `kept` are those that pass, as they are or replaced. */
export function rejoinBatch(all: number, kept: readonly Kept[]): Verdict {
  if (kept.length === 0) return 'drop'
  if (kept.length === all && kept.every(({ isChanged }) => !isChanged)) return 'pass'
  return { replacement: `[${kept.map((one) => one.text).join(',')}]\n` }
}

/** One element of a batch that passes. */
export interface Kept {
  readonly text: string
  readonly isChanged: boolean
}
