// Requests of Sallyport's own in a host's session: under ids that nobody can guess, and answered to nobody else.
import { isUtf8 } from 'node:buffer'
import { SallyportError } from '../../errors.ts'
import { newRequestId } from '../../lib/ids.ts'
import { RawJson } from '../../lib/raw-json.ts'
import type { Response } from '../message/envelope.ts'
import { type Answer, errorAnswer } from './options.ts'
import { inModernDress } from '../message/modern-dress.ts'

interface Waiter {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: SallyportError) => void
}

/** Writes with `say`; every wait ends with the answer or with `fail`. */
export class OwnRequests {
  readonly #say: (line: string) => void
  readonly #waiting = new Map<string, Waiter>()

  constructor(say: (line: string) => void) {
    this.#say = say
  }

  request(method: string, params: string, isModern: boolean): Promise<Answer> {
    const id = newRequestId()
    return new Promise((resolve, reject) => {
      this.#waiting.set(`s${id}`, { resolve, reject })
      const dressed = isModern ? inModernDress(params) : params
      this.#say(`{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${dressed}}\n`)
    })
  }

  /** Takes an answer; false when it is to somebody else's request. */
  settle({ id, text, result, error }: Response): boolean {
    if (this.#waiting.size === 0 || id === null) return false
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

  /** Ends every wait. */
  fail(error: SallyportError): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
