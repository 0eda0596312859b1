// Notifications of one connection as an async iterable that holds the daemon back instead of filling memory.
import type { Caller } from '../rpc/dial.ts'
import type { Notifications } from '../rpc/protocol.ts'
import { expectObject } from './expect-object.ts'

const highWater = 256

/** One notification: which, and what it says. */
export type Notification<N extends keyof Notifications> = {
  readonly [K in N]: { readonly method: K; readonly params: Notifications[K] }
}[N]

/**
 * Collects from the moment of the call, yields in order, ends with the signal and throws when the connection is lost.
 * The connection must serve nothing else: it is not read while the consumer is behind.
 */
export function notifications<N extends keyof Notifications>(
  caller: Caller,
  name: N,
  waiting: { readonly signal?: AbortSignal | undefined },
): AsyncGenerator<Notifications[N]> {
  const all = notificationsOf(caller, [name], waiting)
  return (async function* () {
    for await (const { params } of all) yield params
  })()
}

/** The same for several kinds, each with its name. */
export function notificationsOf<N extends keyof Notifications>(
  caller: Caller,
  names: readonly N[],
  { signal }: { readonly signal?: AbortSignal | undefined },
): AsyncGenerator<Notification<N>> {
  const queue: Notification<N>[] = []
  let wake = Promise.withResolvers<void>()
  const stop = caller.listen((method, params) => {
    if (!names.some((name) => name === method)) return
    queue.push({ method, params: expectObject(method, params) } as Notification<N>)
    if (queue.length >= highWater) caller.pause()
    wake.resolve()
  })
  let isOver = false
  const end = (): void => {
    isOver = true
    wake.resolve()
  }
  void caller.closed.then(end)
  signal?.addEventListener('abort', end, { once: true })

  return (async function* () {
    try {
      for (;;) {
        if (signal?.aborted === true) return
        const next = queue.shift()
        if (next !== undefined) {
          if (queue.length === 0) caller.resume()
          yield next
        } else if (isOver) {
          throw caller.failure ?? new Error('the connection closed without a reason')
        } else {
          await wake.promise
          wake = Promise.withResolvers<void>()
        }
      }
    } finally {
      stop()
      signal?.removeEventListener('abort', end)
    }
  })()
}
