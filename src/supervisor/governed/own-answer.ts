// A session's call in a process of its own: what that process answers, as the line that the host would have got.
import { SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { Admission, Outcome } from '../../schema/governor.ts'
import type { Gate } from '../../schema/gate.ts'
import { errorLine } from '../message/answers.ts'
import type { HostRequest } from '../lanes/conversation.ts'
import { evidenceOf } from '../lanes/held.ts'
import { readEnvelope, type Response } from '../message/envelope.ts'
import { mayNotAsk } from '../lanes/answer-parts.ts'
import { type Declared, nothingDeclared } from '../questions/declared.ts'
import { judgeInput } from '../questions/input-required.ts'
import { whyNotSent } from '../questions/url-required.ts'
import type { RequestOptions } from '../client/options.ts'
import type { OwnProcesses, Speech } from './own-processes.ts'
import { taskLost } from './own-task.ts'
import { awaitAnswer, declaredWith, type Person, taskOf } from '../lanes/person.ts'
import { SecretInResult } from '../message/secret-in-result.ts'
import { kindOf } from '../message/tool-result.ts'
import { unreadableAnswer } from '../message/unavailable.ts'

export interface OwnAnswer extends Pick<Outcome, 'kind' | 'bytes' | 'detail'> {
  /** In latin1 reading, with its line feed */
  readonly line: string
}

/** Never rejects: what went wrong is an answer, too. */
export async function ownAnswer(
  own: OwnProcesses,
  person: Person,
  request: HostRequest,
  admission: Admission & { readonly process: InstanceId },
  params: string,
  {
    gate,
    declared,
    ...options
  }: RequestOptions & Speech & { readonly gate: Gate; readonly declared: Declared },
): Promise<OwnAnswer> {
  const { id } = request
  try {
    const answer = await own.call(admission, params, options)
    const given = answer.kind === 'result' ? answer.result.raw : answer.raw
    const said = answer.kind === 'result' ? answer.said : answer.raw
    const lineOf = (raw: string): string =>
      `{"jsonrpc":"2.0","id":${id.raw},"${answer.kind}":${Buffer.from(raw).toString('latin1')}}\n`
    const line = lineOf(given)
    const envelope = answerIn(line, person)
    const bytes =
      said === given ? evidenceIn(envelope, given) : evidenceIn(answerIn(lineOf(said), person), said)
    const isLegacy = options.introduced !== false
    const lost = envelope.result === null ? null : taskLost(person.server.name, bytes, isLegacy)
    const unsent = whyNotSent(person.server, envelope, () => declaredWith(request, declared))
    const refusal =
      lost?.refusal ??
      (unsent === null ? null : mayNotAsk(person.server.name, request.method, 'elicitation', unsent)) ??
      whyNotPassed(envelope, Buffer.byteLength(given), request, person, gate)
    const kind = answer.kind === 'error' ? 'error' : (lost?.kind ?? kindOf(bytes))
    if (refusal === null) return { kind, bytes, detail: null, line }
    return { kind, bytes, detail: refusal.message, line: errorLine(id, refusal) }
  } catch (thrown) {
    const error = SallyportError.from(thrown)
    const bytes = error instanceof SecretInResult ? error.redacted : null
    const isAnswered = bytes !== null || error.code === 'ERR_SERVER_PROTOCOL'
    const kind = error.code === 'ERR_CALL_TIMEOUT' ? 'timeout' : isAnswered ? 'error' : 'lost'
    return { kind, bytes, detail: error.message, line: errorLine(id, error) }
  }
}

function answerIn(line: string, { server }: Person): Response {
  const envelope = readEnvelope(line, 0, line.length - 1)
  if (envelope.kind !== 'response') throw unreadableAnswer(server.name, 'it is no answer')
  return envelope
}

const evidenceIn = ({ text, result }: Response, raw: string): string =>
  result === null ? raw : evidenceOf(text, result)

/** Why what was answered, and is recorded, does not go to the host; null where it does, and with it what it asks. */
function whyNotPassed(
  response: Response,
  bytes: number,
  request: HostRequest,
  person: Person,
  gate: Gate,
): SallyportError | null {
  const { server, questions } = person
  const { name, output } = server
  if (bytes > output.resultBytes) return tooLarge(name, output.resultBytes)
  const { text, result } = response
  if (result === null) return null
  const asking = { method: request.method, line: request.line, text, inner: result.inner }
  const host = {
    waiting: (names: readonly string[]) => questions.count(taskOf(asking), names),
    declared: () => declaredWith(request, nothingDeclared),
  }
  const verdict = judgeInput(text, result, server, gate, host)
  if (verdict.action === 'pass') {
    awaitAnswer(person, asking, verdict)
    return null
  }
  // In another's stead nobody answers, since the process is over.
  const asked = verdict.action === 'refuse' ? verdict.asked : 'input'
  return mayNotAsk(name, request.method, asked, verdict.reason ?? 'its process, this call’s own, is over')
}

const tooLarge = (server: string, limit: number): SallyportError =>
  new SallyportError(
    'ERR_RESULT_TOO_LARGE',
    `the answer of ${server} is larger than output.result_bytes (${limit}); ask for less or raise it`,
  )
