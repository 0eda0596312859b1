// The requests of one connection that are not answered yet: calls of tools, which may be many, and all others.
import { SallyportError } from '../errors.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import type { Request } from './framing.ts'

type Asked = Pick<Request, 'id' | 'method'>

const isCall = ({ method }: Asked): boolean => method === 'tools/call'

/** Each is begun unless it is refused, and ended once. */
export class InFlight {
  readonly #limits: Pick<ConnectionLimits, 'callsInFlight' | 'requestsInFlight'>
  readonly #requests = new Map<string, AbortController>()
  #calls = 0

  constructor(limits: Pick<ConnectionLimits, 'callsInFlight' | 'requestsInFlight'>) {
    this.#limits = limits
  }

  get size(): number {
    return this.#requests.size
  }

  /** Why it can't be begun beside the others, or null: its id is in use, or there are as many as there may be. */
  refusal(request: Asked): SallyportError | null {
    const { id, method } = request
    if (this.#requests.has(id.raw))
      return new SallyportError(
        'ERR_INVALID_REQUEST',
        `request id ${id.raw} is already in flight; use another`,
      )
    const { callsInFlight, requestsInFlight } = this.#limits
    const [count, most, what] = isCall(request)
      ? [this.#calls, callsInFlight, 'calls']
      : [this.size - this.#calls, requestsInFlight, 'requests']
    if (count < most) return null
    return new SallyportError(
      'ERR_BUSY',
      `${most} ${what} are in flight on this connection; wait for one to end before ${method}`,
    )
  }

  /** Returns what calls it off. */
  begin(request: Asked): AbortController {
    const controller = new AbortController()
    this.#requests.set(request.id.raw, controller)
    if (isCall(request)) this.#calls += 1
    return controller
  }

  /** Calls off the one with that id; false where there is none. */
  cancel(requestId: string | number): boolean {
    const request = this.#requests.get(JSON.stringify(requestId))
    request?.abort(new SallyportError('ERR_CALL_CANCELLED', 'the caller cancelled the call'))
    return request !== undefined
  }

  end(request: Asked): void {
    this.#requests.delete(request.id.raw)
    if (isCall(request)) this.#calls -= 1
  }
}
