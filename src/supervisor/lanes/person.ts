// What stands between a server and a person: whether one is asked, for how long an answer is waited for, and what silence means.
import { cancelledLine, declined, resultLine } from '../message/answers.ts'
import { whenLate } from '../../lib/deadline.ts'
import { members } from '../../lib/json-scan.ts'
import { onePiece } from '../../lib/one-piece.ts'
import type { Request, Response } from '../message/envelope.ts'
import { utf8 } from '../message/utf8.ts'
import type { HostRequest, ServerRequest } from './conversation.ts'
import { sensitiveFields } from '../questions/sensitive.ts'
import { givenIn, givenInAll, wordsOf } from '../questions/given.ts'
import { declaredBy, type Declared, whyNotDeclared } from '../questions/declared.ts'
import { type InputVerdict, paramsIn } from '../questions/input-required.ts'
import { questionKey, type Said, valueOf } from '../questions/questions.ts'
import { queueIsFull, serverMay, whyOff } from '../questions/server-may.ts'
import { readTwoWays } from '../questions/two-ways.ts'
import type { Wire } from './wire.ts'

/** Who asks a person in the era of results, and whom that is told to. */
export type Person = Pick<Wire, 'server' | 'questions' | 'note' | 'declineTask'>

/** Why a person is not asked, or null; `params` are the value of the question's. */
export function whyNotAsked(
  { server, talk, questions }: Wire,
  request: Pick<Request, 'text' | 'params'>,
  params: unknown,
): string | null {
  const { elicitation } = server
  if (!serverMay(server, 'elicitation')) return whyOff(server)
  const unclear = readTwoWays(request.text, request.params)
  if (unclear !== null) return unclear
  const undeclared = whyNotDeclared(talk.declared, 'elicitation', params)
  if (undeclared !== null) return undeclared
  if (talk.waitingOnHost('elicitation') + questions.count() < elicitation.queue) return null
  return queueIsFull(server)
}

/** A question that goes to the host now: flagged where it asks for secrets, and declined where no answer comes; `params` are its value. */
export function questionOf(wire: Wire, request: Request, params: unknown): ServerRequest {
  const { id, method, text, params: span } = request
  flagSecrets(wire, method, sensitiveFields(params))
  const words = span === null ? '' : wordsOf(text, span)
  const question = words === null ? null : onePiece(words) // what was cut out of the line would keep all of it
  return { id, route: 'elicitation', inTime: declineLater(wire, request), question }
}

/** A host that does not answer a request in time has said no: it is told so, and the server gets that answer. */
function declineLater(wire: Wire, { id, method }: Request): () => void {
  const { timeoutMs } = wire.server.elicitation
  return whenLate(timeoutMs, () => {
    if (wire.talk.settleServer(id.key) === null) return
    wire.note('session/declined', { method, reason: late(timeoutMs) })
    wire.toHost(cancelledLine(id, 'no answer in time'))
    wire.toServer(resultLine(id, declined))
  })
}

/** A question passes as it is; that it asks for secrets is told beside it. */
function flagSecrets({ note }: Pick<Person, 'note'>, method: string, fields: readonly string[]): void {
  if (fields.length > 0) note('session/sensitive-question', { method, fields })
}

/** What was asked, and what asked it: in the words of a result, or of a notification about a task. */
export interface AskedBy extends Said {
  readonly method: string
  /** The request that was answered so, or null */
  readonly line: string | null
}

/**
 * A result asked, and no request is open meanwhile: an answer that comes too late is sent on as a no. A task that asked gets its
 * no when the time is over, so that it goes on, and whoever waits for it hears how.
 */
export function awaitAnswer(
  { server, questions, note, declineTask }: Person,
  asked: AskedBy,
  { names, sensitive, isTask }: Extract<InputVerdict, { action: 'pass' }>,
): void {
  const { method, line } = asked
  flagSecrets({ note }, method, sensitive)
  if (names.length === 0) return
  const { timeoutMs } = server.elicitation
  const requests = asked.inner.find(({ key }) => key === 'inputRequests')
  const words = requests === undefined ? '' : wordsOf(asked.text, requests)
  const expired = (): void => note('session/declined', { method, reason: late(timeoutMs) })
  if (isTask) {
    const task = taskOf(asked) ?? ''
    const decline = (late: readonly string[]): void => {
      expired()
      declineTask(task, late)
    }
    return questions.tasks.ask({ task, names, words, timeoutMs, expired: decline })
  }
  const params = line === null ? asked : { text: line, inner: paramsIn(line) }
  questions.ask({ key: questionKey(method, params, asked), names, words, timeoutMs, expired })
}

/**
 * What the host can be asked for by an answer to this: in the later era it says so in each request, before that it said so at
 * the start of the session.
 */
export const declaredWith = (
  { line, declares }: Pick<HostRequest, 'line' | 'declares'>,
  atStart: Declared,
): Declared => (line === null ? (declares ?? atStart) : declaredBy(line, paramsIn(line)))

/** The task that asks: the one that was asked about, else the one that speaks. */
export const taskOf = (said: AskedBy): string | null =>
  (said.line === null ? null : valueOf({ text: said.line, inner: paramsIn(said.line) }, 'taskId')) ??
  valueOf(said, 'taskId')

/** What the answer to a server's request says of a person's own. */
export function confideAnswer(
  wire: Pick<Wire, 'confide'>,
  { question }: ServerRequest,
  { text, result }: Response,
): void {
  if (result !== null) wire.confide(givenIn(utf8(text, result.start, result.end), question))
}

/** The same of a request's answers, before they are taken for given; where nobody may be asked, nobody has answered. */
export function confideAnswers(wire: Wire, { method, text, params }: Request): void {
  const { questions, server } = wire
  if (!serverMay(server, 'elicitation')) return
  const inner = params?.inner ?? []
  const answers = inner.find(({ key }) => key === 'inputResponses')
  if (answers === undefined || text.charCodeAt(answers.start) !== 123) return
  const said = { text, inner }
  const asked =
    method === 'tasks/update'
      ? questions.tasks.words(valueOf(said, 'taskId') ?? '')
      : questions.words(questionKey(method, said))
  const all = members(text, answers.start, answers.end)
  wire.confide(
    givenInAll(
      all.map(({ start, end }) => utf8(text, start, end)),
      asked,
    ),
  )
}

/** The names in a request's answers for which it is too late. */
export function tooLate({ questions }: Person, { method, text, params }: Request): readonly string[] {
  const inner = params?.inner ?? []
  const answers = inner.find(({ key }) => key === 'inputResponses')
  if (answers === undefined) return []
  const said = { text, inner }
  if (method !== 'tasks/update') return questions.answer(questionKey(method, said))
  const isObject = text.charCodeAt(answers.start) === 123
  const names = isObject ? members(text, answers.start, answers.end).map(({ key }) => key) : []
  return questions.tasks.answer(valueOf(said, 'taskId') ?? '', names)
}

const late = (timeoutMs: number): string => `no answer within elicitation.timeout_ms (${timeoutMs})`
