// What the governed requests of one session are given.
import type { SallyportError } from '../../errors.ts'
import type { Comparing } from '../../lib/once-compared.ts'
import type { InstanceId, SessionId } from '../../lib/ids.ts'
import type { Principal } from '../../rpc/protocol.ts'
import type { Gate } from '../../schema/gate.ts'
import type { Admission, Governor } from '../../schema/governor.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Conversation } from '../lanes/conversation.ts'
import type { SessionHolding } from '../lanes/holding.ts'
import type { Person } from '../lanes/person.ts'
import type { Subscribing } from '../lanes/subscriptions.ts'
import type { TaskIds } from '../lanes/tasks.ts'
import type { Wire } from '../lanes/wire.ts'
import type { MessageId } from '../message/message-id.ts'
import type { KeptLines } from './kept-lines.ts'
import type { OwnProcesses } from './own-processes.ts'

export interface GovernedCallsOptions {
  readonly server: ServerSettings
  readonly session: SessionId
  readonly principal: Principal
  readonly gate: Gate
  readonly governor: Governor
  readonly talk: Conversation
  readonly kept: KeptLines
  readonly holding: SessionHolding
  readonly tasks: TaskIds
  readonly person: Person
  /** Null when the server's surface is known; otherwise resolves when it is */
  readonly surface: Comparing
  /** What is held may need a server to be started, for its surface */
  readonly wanted: () => void
  readonly instance: () => InstanceId | null
  /** For servers that have a process for each call */
  readonly own: OwnProcesses
  /** Sends a line to the server in this turn */
  readonly send: (line: string) => void
  /** Says a line of Sallyport's own to the server */
  readonly say: (line: string) => void
  /** Has the server give up what the host is subscribed to, in the older era */
  readonly unsubscribe: (uri: string) => void
  readonly note: Wire['note']
  /** With the id of the request that it answers, a line that has no room gives way to a refusal */
  readonly toHost: (line: string, answers?: MessageId) => void
  /** Finds out whether the host is there, also where nothing is read of it at present */
  readonly look: () => void
  /** A bug showed in what became of a call: its session can't go on */
  readonly broken: (bug: SallyportError) => void
}

/** A request that its server has, and has not answered yet. */
export interface Sent {
  readonly admissions: readonly Admission[]
  readonly sentAt: number
  /** On the conversation's clock, or Infinity */
  readonly dueAt: number
  /** True for a call whose host asks for a task */
  readonly asksTask: boolean
  /** The task that the request is about; not looked at, and mostly undefined */
  readonly taskId: unknown
  /** Null where it is about no subscription */
  readonly subscribing: Subscribing | null
}
