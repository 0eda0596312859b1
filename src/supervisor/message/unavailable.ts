// What callers are told of a server that is not there: which one, why, and who can mend it.
import { SallyportError } from '../../errors.ts'
import { overlongFactor } from './garbage.ts'
import { halfLineBytes } from './half-lines.ts'
import { inSeconds } from '../../lib/in-seconds.ts'
import type { ServerSettings } from '../../schema/settings.ts'

/** One line that begins with the sentence that hosts look for, and goes on with why. */
export function unavailable(server: string, reason: string | null): SallyportError {
  const message = `mcp server ${server} is unavailable${reason === null ? '' : `: ${reason}`}`
  return new SallyportError('ERR_SERVER_UNAVAILABLE', message, { server, reason })
}

/** Why a server is stopped that may not run before an operator says so, and how that is said. */
export const quarantined = (server: string, reason: string): string =>
  `it is quarantined: ${reason}; an operator lets it run again with sallyport release ${server}`

/** Why a server is not there that was given up, and where to look. */
const gaveUp = (server: string, reason: string): string =>
  `${reason}, and it is not tried again; an operator finds more with sallyport logs ${server} and sallyport test ${server}`

/** Why a server is not there that is started again by itself, and when. */
const waits = (server: string, reason: string, nextTryAt: string): string =>
  `${reason}; it is tried again ${inSeconds(nextTryAt)}, and at once by sallyport start ${server}`

/** Why a session may not start a server yet that was never ready, and when one may. */
export const notYet = (server: string, reason: string, nextTryAt: string): string =>
  `${reason}; a session can start it again ${inSeconds(nextTryAt)}, and at once after sallyport start ${server}`

/** Why no session may start a server any more that was never ready, and how it comes back. */
export const noMoreSessions = (server: string, reason: string): string =>
  `${reason}, and no session starts it again before sallyport start ${server}; an operator finds more with sallyport logs ${server} and sallyport test ${server}`

/** An instance that takes no call, as it is shown. */
interface Down {
  readonly state: string
  readonly reason: string | null
  readonly next_try_at: string | null
}

/** Why an instance takes no call in the state that it is in. */
export const whyNot = (server: string, { state, reason, next_try_at }: Down): string => {
  if (state === 'failed') return gaveUp(server, reason ?? state)
  return next_try_at === null ? (reason ?? state) : waits(server, reason ?? state, next_try_at)
}

/** What whoever waits is told of a server that does not introduce itself. */
export const noHandshake = ({
  name,
  timeouts,
}: Pick<ServerSettings, 'name' | 'timeouts'>): SallyportError => {
  const limit = `timeouts.initialize_ms (${timeouts.initializeMs})`
  return late(name, `did not answer the handshake within ${limit}`)
}

/** What whoever waits is told of a server that does not say what it lists. */
export const noList = ({ name, timeouts }: Pick<ServerSettings, 'name' | 'timeouts'>): SallyportError =>
  late(name, `did not say what it lists within timeouts.initialize_ms (${timeouts.initializeMs})`)

const late = (server: string, what: string): SallyportError =>
  new SallyportError('ERR_INITIALIZE_TIMEOUT', `mcp server ${server} ${what}`, {
    server,
    reason: `it ${what}`,
  })

/** A server's own words, fit for one line of a terminal. */
export const printable = (text: string): string =>
  text
    .slice(0, 4096) // and no more is looked at
    .replace(/[\p{C}\p{Zl}\p{Zp}\p{DI}]+/gu, ' ')
    .trim()
    .slice(0, 200)

/** What is told of a line that nobody reads to its end. */
export const overlongLine = ({ name, output }: ServerSettings): SallyportError =>
  new SallyportError(
    'ERR_RESULT_TOO_LARGE',
    `a line of ${name} is longer than output.line_bytes (${output.lineBytes}); raise it or ask for less`,
  )

/** What is told of a line that took too long to come while others came, too. */
export const crowdedOut = ({ name }: Pick<ServerSettings, 'name'>): SallyportError =>
  new SallyportError(
    'ERR_RESULT_TOO_LARGE',
    `a line of ${name} had not ended when those that all servers had begun were more than ${halfLineBytes} bytes together; ask for less, or again`,
  )

/** What a session ends with where nobody can tell which request such a line answers. */
export const unanswerableLine = ({ message }: SallyportError): SallyportError =>
  new SallyportError('ERR_RESULT_TOO_LARGE', `${message}; nobody can tell what it answers`)

/** What it ends with where such a line has no end. */
export const endlessLine = ({ name, output }: ServerSettings): SallyportError =>
  new SallyportError(
    'ERR_RESULT_TOO_LARGE',
    `${name} wrote ${overlongFactor} times output.line_bytes (${output.lineBytes}) without an end of line`,
  )

/** What is told of an answer that is no message. */
export const unreadableAnswer = (server: string, reason: string): SallyportError =>
  new SallyportError(
    'ERR_SERVER_PROTOCOL',
    `mcp server ${server} gave an answer that cannot be read: ${reason}`,
  )

/** What a host is told whose request the server did not answer in time. */
export function noAnswer(
  { name, timeouts }: Pick<ServerSettings, 'name' | 'timeouts'>,
  what: string,
): SallyportError {
  const limit = `timeouts.call_ms (${timeouts.callMs})`
  const message = `mcp server ${name} did not answer ${what} within ${limit}`
  return new SallyportError('ERR_CALL_TIMEOUT', message, { server: name })
}

/** What a caller is told whose request, with a limit of its own, the server did not answer in time. */
export const lateAnswer = (name: string, method: string, timeoutMs: number): SallyportError =>
  new SallyportError(
    'ERR_CALL_TIMEOUT',
    `mcp server ${name} did not answer ${method} within ${timeoutMs} ms`,
    {
      server: name,
    },
  )

/** What a caller is told who took a request back, or for whom it was taken back with a reason of ours. */
export const cancelledRequest = (name: string, method: string, reason: unknown): SallyportError =>
  reason instanceof SallyportError
    ? reason
    : new SallyportError('ERR_CALL_CANCELLED', `${method} on ${name} was cancelled`)
