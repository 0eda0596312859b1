// What a daemon answers at once, had in time: one that took the connection may stand still, and would be waited for without end.
import { SallyportError } from '../errors.ts'

/** How long a daemon may take to greet, or to take a session on, from the connection on */
export const greetingMs = 10_000

/** Throws ERR_DAEMON_UNAVAILABLE where that is not through after so long, and the signal's reason where that aborts before. */
export async function inTime<T>(
  path: string,
  deadlineMs: number,
  signal: AbortSignal | undefined,
  act: (waiting: { readonly signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const deadline = AbortSignal.timeout(deadlineMs)
  try {
    return await act({ signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]) })
  } catch (error) {
    if (error !== deadline.reason) throw error
    throw new SallyportError(
      'ERR_DAEMON_UNAVAILABLE',
      `${path} took the connection and said nothing for ${deadlineMs} ms`,
    )
  }
}
