// Notifications of one connection as an async iterable that holds the daemon back instead of filling memory.
import type { Caller } from '../rpc/dial.ts'
import type { Notifications } from '../rpc/protocol.ts'

const highWater = 256

/**
 * Collects from the moment of the call, yields in order, ends with the signal and throws when the connection is lost.
 * The connection must serve nothing else: it is not read while the consumer is behind.
 */
export function notifications<N extends keyof Notifications>(
  caller: Caller,
  name: N,
  { signal }: { readonly signal?: AbortSignal | undefined },
): AsyncGenerator<Notifications[N]> {
  const queue: Notifications[N][] = []
  let wake = Promise.withResolvers<void>()
  const stop = caller.listen((method, params) => {
    if (method !== name) return
    queue.push(params as Notifications[N])
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
