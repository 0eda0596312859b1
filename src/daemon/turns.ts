// One at a time, or a few, in the order of asking.

/** Begins the work when what was asked for before has ended, in whatever way, or all but a few of it. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

/** Makes a queue of one, or of so many at once. */
export function turns(most = 1): InTurn {
  const waiting: (() => void)[] = []
  let free = most
  const begin = (): void => {
    const next = waiting.shift()
    if (next === undefined) return
    free -= 1
    next()
  }
  return async (work) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push(resolve)
    if (free > 0) begin()
    await promise
    try {
      return await work()
    } finally {
      free += 1
      begin()
    }
  }
}

/** Begins the work when all that was asked for before under the same name has ended. */
export type InTurnOf = <T>(name: string, work: () => Promise<T>) => Promise<T>

/** A queue of one for each name, for as long as something is in it. */
export function turnsByName(): InTurnOf {
  const last = new Map<string, Promise<unknown>>()
  return (name, work) => {
    const done = (last.get(name) ?? Promise.resolve()).then(work)
    const over: Promise<unknown> = done
      .catch(() => undefined)
      .then(() => (last.get(name) === over ? last.delete(name) : undefined))
    last.set(name, over)
    return done
  }
}
