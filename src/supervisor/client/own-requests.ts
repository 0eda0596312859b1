// Requests of Sallyport's own in a host's session: under ids that nobody can guess, and answered to nobody else.
import { isUtf8 } from 'node:buffer'
import { SallyportError } from '../../errors.ts'
import { newRequestId } from '../../lib/ids.ts'
import { RawJson } from '../../lib/raw-json.ts'
import type { Notification, Response } from '../message/envelope.ts'
import { type Answer, errorAnswer, type Waiter } from './options.ts'
import { inModernDress } from '../message/modern-dress.ts'
import { isOf, listen } from './subscription.ts'

/** Writes with `say`; every wait ends with the answer or with `fail`. */
export class OwnRequests {
  readonly #say: (line: string) => void
  readonly #waiting = new Map<string, Waiter>()
  /** Key of the request that subscribed, or null */
  #subscription: string | null = null

  constructor(say: (line: string) => void) {
    this.#say = say
  }

  request(method: string, params: string, isModern: boolean): Promise<Answer> {
    const id = newRequestId()
    return new Promise((resolve, reject) => {
      this.#waiting.set(`s${id}`, { resolve, reject })
      this.#ask(id, method, isModern ? inModernDress(params) : params)
    })
  }

  /** Subscribes, once, in the later era; whenever that is answered, the subscription is over. */
  subscribe(params: string): void {
    if (this.#subscription !== null) return
    const id = newRequestId()
    this.#subscription = `s${id}`
    this.#ask(id, listen, inModernDress(params))
  }

  /** True for a notification of that subscription, which nobody else has asked for. */
  hears(notification: Notification): boolean {
    return isOf(this.#subscription, notification)
  }

  /** Takes an answer; false when it is to somebody else's request. */
  settle({ id, text, result, error }: Response): boolean {
    if (id === null) return false
    if (id.key === this.#subscription) return true
    if (this.#waiting.size === 0) return false
    const waiter = this.#waiting.get(id.key)
    const span = result ?? error
    if (waiter === undefined || span === null) return false
    this.#waiting.delete(id.key)
    const bytes = Buffer.from(text.slice(span.start, span.end), 'latin1')
    if (!isUtf8(bytes))
      waiter.reject(new SallyportError('ERR_SERVER_PROTOCOL', 'what the server lists is not UTF-8'))
    else if (result !== null) waiter.resolve({ kind: 'result', result: new RawJson(bytes.toString('utf8')) })
    else waiter.resolve(errorAnswer(bytes.toString('utf8')))
    return true
  }

  #ask(id: string, method: string, params: string): void {
    this.#say(`{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}\n`)
  }

  /** Ends every wait. */
  fail(error: SallyportError): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
