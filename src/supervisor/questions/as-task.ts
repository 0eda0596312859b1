// No question is a task: a task's answer would be there at once, and the queue and its time would hold no question any more.
import { members, type Span } from '../../lib/json-scan.ts'
import { foldKey } from '../../lib/key-folding.ts'
import { ascii } from '../message/answers.ts'
import { readUnambiguous, type Request } from '../message/envelope.ts'

/** Where a host's `initialize` declares that a question may be a task */
const declared = ['capabilities', 'tasks', 'requests', 'elicitation']

/** The host's request as its server reads it: an `initialize` by which no question may be a task; any other as it is. */
export function withoutQuestionTasks(request: Request): Request {
  const line = request.method === 'initialize' ? without(request, declared) : null
  const plain = line === null ? null : readUnambiguous(line, 0, line.length)
  return plain?.kind === 'request' ? plain : request
}

/** The line of a question without `task`, which whoever does not declare it has to pass over; null where it has none. */
export const askedPlainly = (question: Request): string | null => without(question, ['task'])

/** The request's line without the member of `params` at that path, in whatever spelling; null where there is none. */
function without({ text, start, end, params }: Request, path: readonly string[]): string | null {
  const object = params === null ? null : pruned(text, params, path)
  return params === null || object === null
    ? null
    : `${text.slice(start, params.start)}${object}${text.slice(params.end, end)}`
}

function pruned(text: string, { start, end }: Span, [name = '', ...rest]: readonly string[]): string | null {
  if (text.charCodeAt(start) !== 123) return null
  let isPruned = false
  const kept = members(text, start, end).flatMap((member) => {
    const isNamed = foldKey(member.key) === foldKey(name)
    const less = isNamed && rest.length > 0 ? pruned(text, member, rest) : null
    const isGone = isNamed && rest.length === 0
    isPruned ||= isGone || less !== null
    return isGone ? [] : [`${ascii(member.key)}:${less ?? text.slice(member.start, member.end)}`]
  })
  return isPruned ? `{${kept.join(',')}}` : null
}
