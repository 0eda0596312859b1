// What a host reads about a request of its own that was never sent.
import type { SallyportError } from '../../errors.ts'
import type { Held } from '../lanes/wire.ts'
import { errorLine, resultLine } from '../message/answers.ts'

/** Where the result of a call that was never made has the error that a program reads. */
const errorKey = 'sallyport/error'

/**
 * An error, but for arguments of a tool that its schema does not allow: MCP has those in a result with `isError`, which
 * hosts show to their model, so that it can mend them (SEP-1303). Whoever asked for a task expects no such result. In
 * latin1 reading, with its line feed.
 */
export function refusalLine(
  { request, asksTask }: Pick<Held, 'request' | 'asksTask'>,
  error: SallyportError,
  isLegacy: boolean,
): string {
  const { id, route } = request
  if (error.code !== 'ERR_ARGUMENTS_INVALID' || route !== 'call' || asksTask) return errorLine(id, error)
  return resultLine(id, {
    content: [{ type: 'text', text: error.message }],
    isError: true,
    ...(isLegacy ? {} : { resultType: 'complete' }),
    _meta: { [errorKey]: error.toRpc() },
  })
}
