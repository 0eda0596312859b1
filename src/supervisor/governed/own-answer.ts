// A session's call in a process of its own: what that process answers, as the line that the host would have got.
import { SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { Admission, Outcome } from '../../schema/governor.ts'
import type { Gate } from '../../schema/gate.ts'
import { errorLine } from '../message/answers.ts'
import type { HostRequest } from '../lanes/conversation.ts'
import { readEnvelope } from '../message/envelope.ts'
import { mayNotAsk } from '../lanes/answer-parts.ts'
import { judgeInput } from '../questions/input-required.ts'
import { serverMay } from '../questions/server-may.ts'
import { sendsToAddress } from '../questions/url-required.ts'
import type { RequestOptions } from '../client/options.ts'
import type { OwnProcesses, Speech } from './own-processes.ts'
import { awaitAnswer, type Person, taskOf } from '../lanes/person.ts'
import { SecretInResult } from '../message/secret-in-result.ts'
import { kindOf } from '../message/tool-result.ts'

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
  { gate, ...options }: RequestOptions & Speech & { readonly gate: Gate },
): Promise<OwnAnswer> {
  const { id } = request
  const { server } = person
  try {
    const answer = await own.call(admission, params, options)
    const bytes = answer.kind === 'result' ? answer.result.raw : answer.raw
    if (Buffer.byteLength(bytes) > server.output.resultBytes)
      throw tooLarge(server.name, server.output.resultBytes)
    const line = `{"jsonrpc":"2.0","id":${id.raw},"${answer.kind}":${Buffer.from(bytes).toString('latin1')}}\n`
    expectAskable(line, request, person, gate)
    const kind = answer.kind === 'error' ? 'error' : kindOf(bytes)
    return { kind, bytes, detail: null, line }
  } catch (thrown) {
    const error = SallyportError.from(thrown)
    const bytes = error instanceof SecretInResult ? error.redacted : null
    const kind = error.code === 'ERR_CALL_TIMEOUT' ? 'timeout' : bytes === null ? 'lost' : 'error'
    return { kind, bytes, detail: error.message, line: errorLine(id, error) }
  }
}

/** What its settings do not enable is not asked; in another's stead nobody answers, since the process is over. */
function expectAskable(line: string, request: HostRequest, person: Person, gate: Gate): void {
  const { server, questions } = person
  const envelope = readEnvelope(line, 0, line.length - 1)
  if (envelope.kind !== 'response') return
  if (sendsToAddress(envelope) && !serverMay(server, 'elicitation'))
    throw mayNotAsk(server.name, request.method, 'elicitation')
  if (envelope.result === null) return
  const { inner } = envelope.result
  const asking = { method: request.method, line: request.line, text: line, inner }
  const verdict = judgeInput(line, envelope.result, server, gate, questions.count(taskOf(asking)))
  if (verdict.action === 'pass') return awaitAnswer(person, asking, verdict)
  const asked = verdict.action === 'refuse' ? verdict.asked : 'input'
  throw mayNotAsk(server.name, request.method, asked)
}

const tooLarge = (server: string, limit: number): SallyportError =>
  new SallyportError(
    'ERR_RESULT_TOO_LARGE',
    `the answer of ${server} is larger than output.result_bytes (${limit}); ask for less or raise it`,
  )
