// Which secrets are open in one sandbox: never two different ones for the same host and port.
import { SallyportError } from '../errors.ts'
import { leaseOver } from './lease.ts'

/** A secret as it is opened: whose, what, and the `host:port`s that it goes to. */
export interface OpenSecret {
  readonly credential: string
  readonly value: Buffer
  readonly targets: readonly string[]
}

/** A lease's secrets, from its opening to its end. */
export interface Window {
  readonly secrets: readonly OpenSecret[]
  readonly ended: AbortSignal
}

interface Waiter {
  readonly secrets: readonly OpenSecret[]
  open(): void
}

/** The windows of one sandbox. */
export class Windows {
  readonly #open = new Set<Window>()
  #waiting: readonly Waiter[] = []
  /** For each credential: aborts when all windows that are open for it now have ended */
  readonly #ends = new Map<string, AbortSignal>()

  /**
   * Opens a window, at once or in turn: where another one, open or waiting for longer, has a different secret for one of
   * the targets, it waits for that one's end. Rejects with ERR_CREDENTIAL_BUSY when the signal aborts first.
   */
  async open(window: Window, signal: AbortSignal): Promise<void> {
    const { secrets } = window
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const busy = (): void => {
      this.#waiting = this.#waiting.filter((it) => it !== waiter)
      reject(
        new SallyportError(
          'ERR_CREDENTIAL_BUSY',
          'another call has a different secret open for the same host',
        ),
      )
      this.#admit()
    }
    const waiter: Waiter = {
      secrets,
      open: () => {
        signal.removeEventListener('abort', busy)
        this.#begin(window)
        resolve()
      },
    }
    this.#waiting = [...this.#waiting, waiter]
    if (signal.aborted) busy()
    else {
      signal.addEventListener('abort', busy, { once: true })
      this.#admit()
    }
    return promise
  }

  /** The secret that is open for a credential, with the end of what it may be used for; or null. */
  current(credential: string): { readonly value: Buffer; readonly until: AbortSignal } | null {
    const windows = [...this.#open].filter(({ secrets }) =>
      secrets.some((it) => it.credential === credential),
    )
    const secret = windows[0]?.secrets.find((it) => it.credential === credential)
    if (secret === undefined) return null
    const until = this.#ends.get(credential) ?? allOf(windows.map(({ ended }) => ended))
    this.#ends.set(credential, until)
    return { value: secret.value, until }
  }

  #begin(window: Window): void {
    const change = (): void => {
      for (const { credential } of window.secrets) this.#ends.delete(credential)
    }
    this.#open.add(window)
    change()
    window.ended.addEventListener(
      'abort',
      () => {
        this.#open.delete(window)
        change()
        this.#admit()
      },
      { once: true },
    )
  }

  #admit(): void {
    const before: (readonly OpenSecret[])[] = []
    const still: Waiter[] = []
    const ready: Waiter[] = []
    for (const waiter of this.#waiting) {
      const others = [
        ...[...this.#open].map(({ secrets }) => secrets),
        ...ready.map((it) => it.secrets),
        ...before,
      ]
      if (others.some((secrets) => conflict(secrets, waiter.secrets))) {
        still.push(waiter)
        before.push(waiter.secrets)
      } else ready.push(waiter)
    }
    this.#waiting = still
    for (const waiter of ready) waiter.open()
  }
}

const conflict = (some: readonly OpenSecret[], others: readonly OpenSecret[]): boolean =>
  some.some((one) =>
    others.some(
      (other) =>
        (one.credential !== other.credential || !one.value.equals(other.value)) &&
        one.targets.some((target) => other.targets.includes(target)),
    ),
  )

const allOf = (ends: readonly AbortSignal[]): AbortSignal => {
  const over = new AbortController()
  let left = ends.length
  for (const end of ends)
    end.addEventListener(
      'abort',
      () => {
        if (--left === 0) over.abort(leaseOver)
      },
      { once: true },
    )
  return over.signal
}
