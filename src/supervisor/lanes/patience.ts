// One host's wait for one call that may not be sent yet: it can be ended, and while a person is asked it is never silent.
import type { SallyportError } from '../../errors.ts'
import type { Waiting } from '../../schema/governor.ts'

/** Time between two looks at whether the host is there, ms; every so many-th is a sign of life */
const lookMs = 1000
const looksBetweenSigns = 5

/** The host that waits. */
interface HostEnd {
  readonly toHost: (line: string) => void
  /** Finds out whether it is there, also where nothing is read of it at present */
  readonly look: () => void
}

/** Costs nothing until somebody is asked: then there is a signal, and progress for hosts that gave a token. */
export class Patience implements Waiting {
  readonly #token: string | null
  readonly #host: HostEnd
  #controller: AbortController | null = null
  #timer: NodeJS.Timeout | undefined
  #looks = 0
  #signs = 0
  #over: PromiseWithResolvers<void> | null = null
  #isAsked = false
  /** In words */
  #waitsFor = ''
  /** Why nobody hears what a person would say yes to, or null */
  #unheard: SallyportError | null = null
  /** Why the wait was ended before its time, or null */
  reason: SallyportError | null = null

  constructor(token: string | null, host: HostEnd) {
    this.#token = token
    this.#host = host
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.reason !== null) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  readonly asked = (): void => {
    const isFirst = !this.#isAsked
    this.#isAsked = true
    this.#waitsFor = "an operator's approval"
    if (this.#unheard !== null) this.end(this.#unheard)
    if (!isFirst || this.reason !== null) return
    this.#hush()
    this.#look()
    this.#timer = setInterval(() => this.#look(), lookMs)
  }

  /** No person is asked, or none any more: it waits for other calls of the server's, of which there may be thousands. */
  readonly queued = (isWaiting: boolean): void => {
    this.#isAsked = false
    this.#waitsFor = 'its turn at the server'
    this.#hush()
    if (!isWaiting || this.#token === null || this.reason !== null) return
    this.#timer = setInterval(() => this.#sign(), lookMs * looksBetweenSigns)
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
    this.#timer = undefined
  }

  #look(): void {
    const isSign = this.#looks++ % looksBetweenSigns === 0
    if (isSign && this.#token !== null) this.#sign()
    else this.#host.look()
  }

  // Each is more than the one before, as MCP has it, and a little less than the nothing with which a server may begin.
  #sign(): void {
    const progress = (++this.#signs - 1_000_000) / 1_000_000_000
    const params = `{"progressToken":${this.#token},"progress":${progress},"message":"waiting for ${this.#waitsFor}"}`
    this.#host.toHost(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}\n`)
  }
}
