// What an operator who answers is told of questions: each once, each end once, however slowly it is read.
import type { ApprovalHappening } from '../call/approve.ts'
import type { ApprovalAnswer } from '../call/ports.ts'
import type { Notifier } from '../rpc/answering.ts'
import type * as Wire from '../rpc/approvals.ts'
import type { Caller } from '../supervisor/ports.ts'
import type { EventLog } from './events.ts'

type Settled = ApprovalAnswer & { readonly id: string }
type Withdrawn = Extract<ApprovalHappening, { kind: 'withdrawn' }>

export interface FeedPorts {
  readonly events: Pick<EventLog, 'follow'>
  /** The questions that wait at present */
  readonly pending: () => readonly Wire.PendingApproval[]
}

/** Where a feed begins. */
export interface FeedStart {
  /** Number of the last event before it */
  readonly seq: number
  /** Questions that the operator knows of already */
  readonly known: readonly string[]
}

/**
 * Tells of questions and of their ends until the stream's signal. Where events went by unseen, what waits is told from the
 * present, and what waits no more is told as over, without how it ended: the journal has that.
 */
export async function feedApprovals(
  { events, pending }: FeedPorts,
  { seq, known }: FeedStart,
  caller: Caller,
  stream: Pick<Notifier, 'signal' | 'notify'>,
): Promise<void> {
  const open = new Set(known)
  const ask = async (question: Wire.PendingApproval): Promise<void> => {
    if (open.has(question.id)) return
    open.add(question.id)
    await stream.notify('approvals/asked', question)
  }
  const settle = async (settled: Wire.SettledApproval): Promise<void> => {
    if (open.delete(settled.id)) await stream.notify('approvals/settled', settled)
  }
  for await (const { type, detail } of events.follow(caller, seq, stream.signal)) {
    if (type === 'approval/asked') await ask(detail as unknown as Wire.PendingApproval)
    else if (type === 'approval/settled') await settle(settledView(detail as unknown as Settled))
    else if (type === 'approval/withdrawn')
      await stream.notify('approvals/settled', withdrawnView(detail as unknown as Withdrawn))
    else if (type === 'events/lost') {
      const present = pending()
      const waiting = new Set(present.map(({ id }) => id))
      for (const id of open) if (!waiting.has(id)) await settle(endUnseen(id))
      for (const question of present) await ask(question)
    }
  }
}

const settledView = (settled: Settled): Wire.SettledApproval => ({
  id: settled.id,
  granted: settled.granted,
  scope: settled.granted ? settled.scope : null,
  by: settled.by,
  reason: settled.granted ? null : settled.reason,
})

const withdrawnView = ({ id, scope, by, reason }: Withdrawn): Wire.SettledApproval => ({
  id,
  granted: false,
  scope,
  by,
  reason,
})

const endUnseen = (id: string): Wire.SettledApproval => ({
  id,
  granted: null,
  scope: null,
  by: null,
  reason: 'it waits no more; how it ended went by unseen, and stands in the journal',
})
