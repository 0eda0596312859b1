// A question of a call as a person reads it, and how it ended.
import type { Client } from '../client/client.ts'
import { SallyportError } from '../errors.ts'
import type { PendingApproval, SettledApproval } from '../rpc/approvals.ts'
import { hanging, paint, visible } from './output.ts'

/** A question as it is put: with its arguments whole where they are wanted so, or else as far as they came with it. */
export async function asked(
  client: Client,
  pending: PendingApproval,
  { full, shows }: { readonly full: boolean; readonly shows: string },
  signal: AbortSignal,
): Promise<string> {
  if (full) return wholeQuestion(client, pending, signal)
  const { text, next, length } = pending
  return questionOf(pending, text, next === null ? null : `+${length - next} characters, ${shows} shows all`)
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
  return questionOf(pending, text, null)
}

function questionOf(
  { id, principal, identity, reason, ttl_ms }: PendingApproval,
  text: string,
  rest: string | null,
): string {
  const lead = `${id} uid ${principal}: `
  return [
    `${lead.replace(id, paint('yellow', id))}${hanging(visible(identity), lead.length)}`,
    `  ${hanging(visible(text), 2)}`,
    ...(rest === null ? [] : [paint('yellow', `  ${rest}`)]),
    paint('dim', `  ${hanging(visible(`${reason}; s and p hold for ${duration(ttl_ms)}`), 2)}`),
  ].join('\n')
}

const duration = (ms: number): string =>
  ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min`

/** How a question ended. */
export function settledLine({ id, granted, scope, by, reason }: SettledApproval): string {
  const who = by === null ? '' : ` by uid ${by}`
  if (granted === null) return `${paint('dim', id)} over: ${visible(reason ?? '')}`
  if (!granted && scope !== null) return `${paint('red', id)} taken back${who}: ${visible(reason ?? '')}`
  return granted
    ? `${paint('green', id)} granted${who}, ${scope ?? 'once'}`
    : `${paint('red', id)} not granted${who}: ${visible(reason ?? '')}`
}
