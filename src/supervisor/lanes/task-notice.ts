// What a server says of a task outside of an answer, before the host hears it.
import type { SallyportError } from '../../errors.ts'
import type { Member } from '../../lib/json-scan.ts'
import type { Declared } from '../questions/declared.ts'
import { judgeInput } from '../questions/input-required.ts'
import { whyOff } from '../questions/server-may.ts'
import { whyNotTold } from '../questions/url-required.ts'
import { mayNotAsk } from './answer-parts.ts'
import { awaitAnswer, taskOf } from './person.ts'
import type { Wire } from './wire.ts'

/** Why the host does not hear it, or null where it does; what it asks the host is waited for from then on. */
export function taskNoticeRefused(
  wire: Wire,
  { method, text }: { readonly method: string; readonly text: string },
  params: Member,
): SallyportError | null {
  const { gate, questions, server, talk } = wire
  const asked = { method, line: null, text, inner: params.inner }
  const declared = (): Declared => talk.declared
  const waiting = (names: readonly string[]): number => questions.count(taskOf(asked), names)
  const verdict = judgeInput(text, params, server, gate, { waiting, declared })
  const unsent = whyNotTold(server, text, params, declared)
  if (verdict.action === 'pass' && unsent === null) {
    awaitAnswer(wire, asked, verdict)
    return null
  }
  const what = verdict.action === 'refuse' ? verdict.asked : 'input'
  const reason = (verdict.action === 'pass' ? unsent : verdict.reason) ?? whyOff(server)
  return mayNotAsk(server.name, method, what, reason)
}
