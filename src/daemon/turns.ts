// One at a time, in the order of asking.

/** Begins the work when all that was asked for before has ended, in whatever way. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

/** Makes a queue of one. */
export function turns(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
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
