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
