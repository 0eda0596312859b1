// Requests of Sallyport's own in a host's session: under ids that nobody can guess, and answered to nobody else.
import { isUtf8 } from 'node:buffer'
import { SallyportError } from '../../errors.ts'
import { newRequestId } from '../../lib/ids.ts'
import { RawJson } from '../../lib/raw-json.ts'
import type { Notification, Response } from '../message/envelope.ts'
import { type Answer, errorAnswer } from './answer.ts'
import type { Waiter } from './options.ts'
import { inModernDress } from '../message/modern-dress.ts'
import { listen, Subscription } from './subscription.ts'

/** Writes with `say`; every wait ends with the answer or with `fail`. */
export class OwnRequests {
  readonly #say: (line: string) => void
  readonly #waiting = new Map<string, Waiter>()
  readonly #subscription: Subscription

  /** Tells `changed` where lists may have changed, and the server had nobody to tell. */
  constructor(say: (line: string) => void, changed: () => void) {
    this.#say = say
    const ask = (params: string): string => {
      const id = newRequestId()
      this.#ask(id, listen, inModernDress(params))
      return `s${id}`
    }
    this.#subscription = new Subscription({ ask, changed })
  }

  request(method: string, params: string, isModern: boolean): Promise<Answer> {
    const id = newRequestId()
    return new Promise((resolve, reject) => {
      this.#waiting.set(`s${id}`, { resolve, reject })
      this.#ask(id, method, isModern ? inModernDress(params) : params)
    })
  }

  /** Subscribes, once, in the later era. */
  subscribe(params: string): void {
    this.#subscription.begin(params)
  }

  /** True for a notification of that subscription, which nobody else has asked for. */
  hears(notification: Notification): boolean {
    return this.#subscription.hears(notification)
  }

  /** Takes an answer; false when it is to somebody else's request. */
  settle({ id, text, result, error }: Response): boolean {
    if (id === null) return false
    if (this.#subscription.settles(id.key)) return true
    if (this.#waiting.size === 0) return false
    const waiter = this.#waiting.get(id.key)
    const span = result ?? error
    if (waiter === undefined || span === null) return false
    this.#waiting.delete(id.key)
    const bytes = Buffer.from(text.slice(span.start, span.end), 'latin1')
    if (!isUtf8(bytes))
      waiter.reject(new SallyportError('ERR_SERVER_PROTOCOL', 'what the server lists is not UTF-8'))
    else if (result !== null) {
      const said = bytes.toString('utf8')
      waiter.resolve({ kind: 'result', result: new RawJson(said), said })
    } else waiter.resolve(errorAnswer(bytes.toString('utf8')))
    return true
  }

  #ask(id: string, method: string, params: string): void {
    this.#say(`{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}\n`)
  }

  /** Ends every wait, and the subscription. */
  fail(error: SallyportError): void {
    this.#subscription.end()
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
