// What a host reads about a request of its own that was never sent.
import type { ErrorCode, SallyportError } from '../../errors.ts'
import type { Held } from '../lanes/wire.ts'
import { errorLine, resultLine } from '../message/answers.ts'

/** Where the result of a call that was never made has the error that a program reads. */
const errorKey = 'sallyport/error'

/**
 * Errors of a tool as MCP has them, in a result with `isError`, which hosts show to their model: arguments that its schema does
 * not allow, so that it can mend them (SEP-1303), and what came of asking an operator, so that it knows whether to ask again.
 */
const forModels: ReadonlySet<ErrorCode> = new Set([
  'ERR_ARGUMENTS_INVALID',
  'ERR_APPROVAL_DENIED',
  'ERR_APPROVAL_TIMEOUT',
  'ERR_APPROVAL_UNAVAILABLE',
])

/** An error of the tool for whoever calls one, and of the request for all others: whoever asked for a task expects no such result. In latin1 reading, with its line feed. */
export function refusalLine(
  { request, asksTask }: Pick<Held, 'request' | 'asksTask'>,
  error: SallyportError,
  isLegacy: boolean,
): string {
  const { id, route } = request
  if (!forModels.has(error.code) || route !== 'call' || asksTask) return errorLine(id, error)
  return resultLine(id, {
    content: [{ type: 'text', text: error.message }],
    isError: true,
    ...(isLegacy ? {} : { resultType: 'complete' }),
    _meta: { [errorKey]: error.toRpc() },
  })
}
