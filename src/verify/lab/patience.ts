// The end of patience: work that was told to end and takes what it made down is waited for, and not for ever.

/** For what takes moments on a machine at rest, ms. What has not come by then has no verdict: the machine may be that busy. */
export const ampleMs = 30_000

/**
 * The same where a control is gone without which it does not come, as it did with it just now, in so many ms: so long that this was
 * less than half of it, also on a machine that is busy.
 */
export const withoutControlMs = (heldMs: number): number => Math.min(ampleMs, Math.max(3000, 3 * heldMs))

/** How long what was made may take to be gone once the signal has come, ms: twice what a sandbox that will not end is given. */
export const takeDownMs = 20_000

/**
 * Returns what the work comes to, or throws the signal's reason where that comes first and the work is not over `graceMs` after
 * it. What the work stands for may be there still then: whoever is told so ends its process.
 */
export const unlessStuck = async <T>(
  work: Promise<T>,
  signal: AbortSignal,
  graceMs = takeDownMs,
): Promise<T> => {
  const { promise: stuck, reject } = Promise.withResolvers<never>()
  let timer: NodeJS.Timeout | undefined
  const wait = (): void => {
    const reason = signal.reason instanceof Error ? signal.reason : new Error('aborted')
    timer = setTimeout(() => reject(new StuckError(reason)), graceMs)
  }
  if (signal.aborted) wait()
  signal.addEventListener('abort', wait, { once: true })
  try {
    return await Promise.race([work, stuck])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', wait)
  }
}

/** Work that did not come to an end when it was told to. */
export class StuckError extends Error {
  constructor(cause: Error) {
    super('it did not end when it was told to', { cause })
  }
}
