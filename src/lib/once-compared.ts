// The one wait between what may be sent and its being sent.

/** Null while nothing is left to compare; otherwise resolves when it was, though there may be more by then. */
export type Comparing = () => Promise<void> | null

/** Takes the next step in a turn in which nothing is left to compare: in this one, where that is so. */
export function onceCompared(comparing: Comparing, next: () => void, failed: (error: unknown) => void): void {
  const pending = comparing()
  if (pending === null) return next()
  pending.then(() => onceCompared(comparing, next, failed), failed)
}
