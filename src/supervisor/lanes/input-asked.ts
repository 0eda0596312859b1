// A result by which a server asks, in the era in which it writes no requests of its own.
import { newRequestId } from '../../lib/ids.ts'
import type { Member } from '../../lib/json-scan.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { errorLine } from '../message/answers.ts'
import type { Response } from '../message/envelope.ts'
import type { Declared } from '../questions/declared.ts'
import { judgeInput, retryLine } from '../questions/input-required.ts'
import { mayNotAsk } from './answer-parts.ts'
import type { HostRequest } from './conversation.ts'
import { heldAgain } from './held.ts'
import { awaitAnswer, declaredWith, taskOf } from './person.ts'
import type { Verdict, Wire } from './wire.ts'

/** How often one request may be sent again because the server wants more input */
const maxRounds = 16
const tooOften = { asked: 'more input', reason: `it asked ${maxRounds} times already` }
const unreadable = 'its requestState can be read in two ways, or is too much to be read'

/** It passes, is answered in the host's stead, or becomes an error; `line` is the request that it answers. */
export function inputAsked(
  wire: Wire,
  request: HostRequest,
  line: string,
  response: Response,
  result: Member,
): Verdict {
  const { gate, server, questions, talk } = wire
  const asked = { method: request.method, line, text: response.text, inner: result.inner }
  const declared = (): Declared => declaredWith(request, talk.declared)
  const waiting = (names: readonly string[]): number => questions.count(taskOf(asked), names)
  const verdict = judgeInput(response.text, result, server, gate, { waiting, declared })
  if (verdict.action === 'pass') {
    awaitAnswer(wire, asked, verdict)
    return readdressed(request, response)
  }
  if (verdict.action === 'refuse') return notAsked(server, request, verdict.asked, verdict.reason)
  if (request.round >= maxRounds) return notAsked(server, request, tooOften.asked, tooOften.reason)
  const id = newRequestId()
  const wireId = { raw: `"${id}"`, key: `s${id}` }
  const round = request.round + 1
  const again = retryLine(line, wireId.raw, request.method, verdict.responses, verdict.state)
  const held = heldAgain({ ...request, wireId, round }, again)
  if (held === null) return notAsked(server, request, 'input', unreadable)
  wire.note('session/input-answered', { method: asked.method, round, reason: verdict.reason })
  wire.hold(held)
  return 'drop'
}

/** An error in the stead of an answer that asks for what it may not. */
export const notAsked = (
  { name }: Pick<ServerSettings, 'name'>,
  { id, method }: HostRequest,
  asked: string,
  reason: string,
): Verdict => ({ replacement: errorLine(id, mayNotAsk(name, method, asked, reason)) })

/** Gives an answer the id that the host knows, where the request went out under another. */
export function readdressed(request: HostRequest, { text, start, end, idSpan }: Response): Verdict {
  if (request.wireId.key === request.id.key) return 'pass'
  return {
    replacement: `${text.slice(start, idSpan.start)}${request.id.raw}${text.slice(idSpan.end, end)}\n`,
  }
}
