// Whoever reads what a daemon tells beside a test, until disposed: what goes wrong with that is thrown there.
import type { Client } from '../../src/client/client.ts'
import type { SallyportError } from '../../src/errors.ts'
import type { SallyportEvent } from '../../src/rpc/protocol.ts'

interface Waiting {
  readonly signal: AbortSignal
  readonly subscribed: () => void
}

/** What may come over a daemon that is followed. */
export interface Fate {
  /** It may end, or be killed: then there is nothing more to be told, and no answer fails that finds it gone */
  readonly mayEnd?: boolean
}

/**
 * Hands on what is told, one after another; the subscription stands when this resolves. The first failure, of the subscription
 * or of `hear`, is thrown at disposal.
 */
export async function following<T>(
  subscribe: (waiting: Waiting) => AsyncIterable<T>,
  hear: (told: T) => unknown,
  { mayEnd = false }: Fate = {},
): Promise<AsyncDisposable> {
  const leaving = new AbortController()
  const { promise: subscription, resolve: subscribed } = Promise.withResolvers<void>()
  const failures: unknown[] = []
  const fail = (error: unknown): void => {
    if (!mayEnd || !isGone(error)) failures.push(error)
  }
  const follow = async (): Promise<void> => {
    for await (const told of subscribe({ signal: leaving.signal, subscribed }))
      await Promise.resolve(told).then(hear).catch(fail)
  }
  const over = follow().catch(fail).finally(subscribed)
  const leave = async (): Promise<void> => {
    leaving.abort()
    await over
    if (failures.length > 0) throw failures[0]
  }
  await subscription
  if (failures.length > 0) await leave()
  return { [Symbol.asyncDispose]: leave }
}

/** Every event of the daemon until disposed, those before this first. */
export async function hearing(client: Client, fate: Fate = {}) {
  const events: SallyportEvent[] = []
  const subscribe = (waiting: Waiting) => client.events({ since: 0, ...waiting })
  return { events, ...(await following(subscribe, (event) => events.push(event), fate)) }
}

/** Whether it is the failure of a call that finds no daemon. */
export const isGone = (error: unknown): boolean =>
  (error as Partial<SallyportError>).code === 'ERR_DAEMON_UNAVAILABLE'
