// A promise that a test awaits only further below.

/** The same promise. Where the test ends before it awaits it, its rejection is none that nobody handles. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}
