// The signals of `serve`, heard from the program's first lines: loading takes a while, and a container's first process never
// gets a signal that it does not listen for.

/** What a daemon's process was told by signals since it began to listen. */
export interface Told {
  /** Resolves once it is told to end; being told so again ends the process at once, by that signal */
  readonly end: Promise<void>
  /** Whether it was told to end */
  readonly mustEnd: boolean
  /** Aborted when it is told to end */
  readonly signal: AbortSignal
  /** Has `act` called each time that the configuration is to be read again, and at once where that was said already */
  onReload(act: () => void): void
}

let told: Told | null = null

/** What was said since the first call; listens from that on. */
export const toldBySignals = (): Told => (told ??= listen())

function listen(): Told {
  const { promise, resolve } = Promise.withResolvers<void>()
  const ending = new AbortController()
  let isDue = false
  let reload = (): void => void (isDue = true)
  for (const [signal, number] of [
    ['SIGTERM', 15],
    ['SIGINT', 2],
  ] as const)
    process.once(signal, () => {
      process.once(signal, () => {
        // By the signal, which nobody listens to any more: an exit can hang. Where we are PID 1 nothing comes of it.
        process.kill(process.pid, signal)
        process.exit(128 + number)
      })
      ending.abort()
      resolve()
    })
  process.on('SIGHUP', () => reload())
  return {
    end: promise,
    get mustEnd() {
      return ending.signal.aborted
    },
    signal: ending.signal,
    onReload(act) {
      reload = act
      if (isDue) act()
    },
  }
}
