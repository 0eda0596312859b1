// A question of a call as a person reads it, and how it ended.
import type { Client } from '../client/client.ts'
import { SallyportError } from '../errors.ts'
import type { PendingApproval, SettledApproval } from '../rpc/governed.ts'
import { hanging, paint, visible } from './output.ts'

/** A question, with its arguments whole where they are wanted so. */
export async function asked(
  client: Client,
  pending: PendingApproval,
  { full }: { readonly full?: boolean },
  signal: AbortSignal,
): Promise<string> {
  return full === true ? wholeQuestion(client, pending, signal) : questionOf(pending)
}

function questionOf({ id, principal, summary, reason }: PendingApproval): string {
  const lead = `${id} uid ${principal}: `
  const line = hanging(visible(summary), lead.length)
  return `${lead.replace(id, paint('yellow', id))}${line}\n${paint('dim', `  ${hanging(visible(reason), 2)}`)}`
}

/** The question with its arguments, however many answers they take. */
export async function wholeQuestion(
  client: Client,
  pending: PendingApproval,
  signal: AbortSignal,
): Promise<string> {
  let [{ text, next }] = [pending]
  try {
    while (next !== null) {
      const piece = await client.call('approvals/text', { id: pending.id, offset: next }, { signal })
      text += piece.text
      next = piece.next
    }
  } catch (error) {
    if (SallyportError.from(error).code !== 'ERR_APPROVAL_NOT_FOUND') throw error
    text += '… (settled meanwhile)'
  }
  return `${questionOf(pending)}\n  ${hanging(visible(text), 2)}`
}

/** How a question ended. */
export function settledLine({ id, granted, scope, by, reason }: SettledApproval): string {
  const who = by === null ? '' : ` by uid ${by}`
  if (granted === null) return `${paint('dim', id)} over: ${visible(reason ?? '')}`
  return granted
    ? `${paint('green', id)} granted${who}, ${scope ?? 'once'}`
    : `${paint('red', id)} not granted${who}: ${visible(reason ?? '')}`
}
