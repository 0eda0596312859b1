// What stands between a server and a person: whether one is asked, for how long an answer is waited for, and what silence means.
import { cancelledLine, declined, resultLine } from './answers.ts'
import type { Request, Response } from './envelope.ts'
import { paramsIn } from './input-required.ts'
import { questionKey } from './questions.ts'
import { serverMay } from './server-may.ts'
import type { Wire } from './wire.ts'

/** Why a person is not asked, or null. */
export function whyNotAsked({ server, talk }: Wire): string | null {
  const { trust, elicitation } = server
  if (!serverMay(server, 'elicitation'))
    return trust === 'sandboxed' ? 'the server is sandboxed' : 'elicitation.enabled is false'
  if (talk.waitingOnHost('elicitation') + talk.questions.count < elicitation.queue) return null
  return `elicitation.queue (${elicitation.queue}) questions wait already`
}

/** A host that does not answer a request in time has said no: it is told so, and the server gets that answer. */
export function declineLater(wire: Wire, { id, method }: Request): NodeJS.Timeout {
  const { timeoutMs } = wire.server.elicitation
  return setTimeout(() => {
    if (wire.talk.settleServer(id.key) === null) return
    wire.note('session/declined', { method, reason: late(timeoutMs) })
    wire.toHost(cancelledLine(id, 'no answer in time'))
    wire.toServer(resultLine(id, declined))
  }, timeoutMs)
}

/** A result asked, and no request is open meanwhile: an answer that comes too late is sent on as a no. */
export function awaitAnswer(
  wire: Wire,
  method: string,
  line: string,
  { text, result }: Response,
  names: readonly string[],
): void {
  const { timeoutMs } = wire.server.elicitation
  const key = questionKey(method, { text: line, inner: paramsIn(line) }, { text, inner: result?.inner ?? [] })
  const expired = (): void => wire.note('session/declined', { method, reason: late(timeoutMs) })
  wire.talk.questions.ask({ key, names, timeoutMs, expired })
}

const late = (timeoutMs: number): string => `no answer within elicitation.timeout_ms (${timeoutMs})`
