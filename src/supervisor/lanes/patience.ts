// One host's wait for one call that may not be sent yet: it can be ended, and while a person is asked it is never silent.
import type { SallyportError } from '../../errors.ts'
import type { Waiting } from '../../schema/governor.ts'

/** Time between two signs of life, ms */
const signMs = 5000

/** Costs nothing until somebody is asked: then there is a signal, and progress for hosts that gave a token. */
export class Patience implements Waiting {
  readonly #token: string | null
  readonly #toHost: (line: string) => void
  #controller: AbortController | null = null
  #timer: NodeJS.Timeout | undefined
  #signs = 0
  #over: PromiseWithResolvers<void> | null = null
  #isAsked = false
  /** Why nobody hears what a person would say yes to, or null */
  #unheard: SallyportError | null = null
  /** Why the wait was ended before its time, or null */
  reason: SallyportError | null = null

  constructor(token: string | null, toHost: (line: string) => void) {
    this.#token = token
    this.#toHost = toHost
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.reason !== null) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  readonly asked = (): void => {
    this.#isAsked = true
    if (this.#unheard !== null) this.end(this.#unheard)
    if (this.#token === null || this.#timer !== undefined || this.reason !== null) return
    this.#sign()
    this.#timer = setInterval(() => this.#sign(), signMs)
  }

  /** Ends the wait; the first reason wins. */
  end(reason: SallyportError): void {
    this.reason ??= reason
    this.#controller?.abort(this.reason)
    this.#hush()
  }

  /** The host is gone: a wait for a person ends, now and if it comes to one; what no person is asked about goes on. */
  leave(reason: SallyportError): void {
    this.#unheard = reason
    if (this.#isAsked) this.end(reason)
  }

  /** Resolves when it is decided what becomes of the call: it was sent, or refused, or nobody waits for either. */
  over(): Promise<void> {
    this.#over ??= Promise.withResolvers()
    return this.#over.promise
  }

  /** It is decided: no more signs of life. */
  close(): void {
    this.#hush()
    this.#over?.resolve()
  }

  #hush(): void {
    if (this.#timer !== undefined) clearInterval(this.#timer)
  }

  // So small that whatever the server says later of its own progress is more.
  #sign(): void {
    const progress = ++this.#signs / 1_000_000
    const params = `{"progressToken":${this.#token},"progress":${progress},"message":"waiting for an operator's approval"}`
    this.#toHost(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}\n`)
  }
}
