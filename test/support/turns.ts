// How often the event loop has come round, for proofs that long work leaves others their turns.

/** Turns of the event loop so far, as long as somebody looks. */
export function turns(): { readonly count: () => number; readonly stop: () => void } {
  let [count, isOver] = [0, false]
  const next = (): void => {
    count += 1
    if (!isOver) setImmediate(next)
  }
  setImmediate(next)
  return { count: () => count, stop: () => (isOver = true) }
}
