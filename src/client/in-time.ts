// What a daemon answers at once, had in time: one that took the connection may stand still, and would be waited for without end.
import { SallyportError } from '../errors.ts'
import { whenLate } from '../lib/deadline.ts'
import type { OperatorMethods } from '../rpc/protocol.ts'

const greetingMs = 10_000
/** For an answer out of what the daemon knows, on a machine that is busy with other things */
const answerMs = 60_000

/** How long, and what is told of a daemon that takes longer. */
interface Deadline {
  readonly ms: number
  readonly late: string
}

/** Throws ERR_DAEMON_UNAVAILABLE where that is not through in time, and the signal's reason where that aborts before. */
export async function inTime<T>(
  { ms, late }: Deadline,
  signal: AbortSignal | undefined,
  act: (waiting: { readonly signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController()
  const callOff = whenLate(ms, () => deadline.abort(new SallyportError('ERR_DAEMON_UNAVAILABLE', late)))
  const ends = signal === undefined ? deadline.signal : AbortSignal.any([signal, deadline.signal])
  try {
    return await act({ signal: ends })
  } finally {
    callOff()
  }
}

/** For a greeting, or for taking a session on, from the connection on. */
export const greetingAt = (path: string): Deadline => ({
  ms: greetingMs,
  late: `${path} took the connection and said nothing for ${greetingMs} ms`,
})

/** Methods that wait for nothing: no server, no person, no file. */
const answeredAtOnce: ReadonlySet<keyof OperatorMethods> = new Set([
  'servers/list',
  'servers/get',
  'servers/holds',
  'permits/list',
  'approvals/list',
] as const)

/** For what is asked; null where the answer takes whatever it takes. */
export function answerFrom<M extends keyof OperatorMethods>(
  path: string,
  method: M,
  params: OperatorMethods[M]['params'],
): Deadline | null {
  // A server that is starting is waited for where it is named.
  const isList = method === 'tools/list' && !('server' in params)
  if (!isList && !answeredAtOnce.has(method)) return null
  const late = `${path} did not answer ${method} for ${answerMs} ms: its daemon stands still, or has too much to do; see its log, or end it and start another`
  return { ms: answerMs, late }
}
