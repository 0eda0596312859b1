// The supervisor as an MCP client of its own: for control calls, where no host speaks MCP itself.
import { SallyportError } from '../../errors.ts'
import { whenLate } from '../../lib/deadline.ts'
import { contained } from '../message/contained.ts'
import { type Answer, answerOf } from './answer.ts'
import type { ClientOptions, RequestOptions, Waiter } from './options.ts'
import { cancelledLine, declined, errorLine, resultLine, rootsOf } from '../message/answers.ts'
import { inputOf } from '../dispatch.ts'
import { Garbage, overlongFactor } from '../message/garbage.ts'
import { meet } from './handshake.ts'
import { inModernDress } from '../message/modern-dress.ts'
import type { Introduced } from '../lanes/conversation.ts'
import type { Looked } from '../message/line-look.ts'
import { ServerLines } from '../message/server-lines.ts'
import { SecretInResult } from '../message/secret-in-result.ts'
import { cancelledRequest, lateAnswer, unavailable, unreadableAnswer } from '../message/unavailable.ts'
import { utf8 } from '../message/utf8.ts'
import { listen, listenParams, Subscription } from './subscription.ts'
import { type Introduction, unknownServer } from './surface.ts'
import { type Envelope, type Notification, readEnvelope } from '../message/envelope.ts'
import { lastId, readHead } from '../message/unread.ts'
import type { Request, Response } from '../message/envelope.ts'
import { followEnd } from '../instance/process-end.ts'
import type { Guests } from '../shared/guests.ts'

/** Requests in flight beyond which more are refused */
const maxInFlight = 4096

/**
 * Speaks either era. Answers a server's own requests as nobody's host: no sampling, elicitation declined, roots from
 * the mounts. Results that come late are dropped. Every wait ends: with the answer, the deadline, the signal or the
 * process.
 */
export class McpClient {
  readonly #options: ClientOptions
  readonly #waiting = new Map<string, Waiter>()
  #lastId = 0
  #isModern: boolean
  #introduction = unknownServer
  readonly #subscription: Subscription
  #closed: SallyportError | null = null
  readonly #broken = Promise.withResolvers<SallyportError>()
  /** Resolves when the server can't be spoken to any more, though its process may live on */
  readonly broken = this.#broken.promise
  readonly #guests: Guests | null
  readonly #garbage: Garbage
  #guestBytes = 0
  /** Why nobody asks it anything any more: told to whoever still waits for an answer when its process ends */
  leaving: SallyportError | null = null

  constructor(options: ClientOptions) {
    this.#options = options
    const { process, server, guests = null, isModern = false } = options
    this.#guests = guests
    const ask = (params: string): string => {
      this.#send(this.nextId(), listen, this.dress(params))
      return `n${this.#lastId}`
    }
    this.#subscription = new Subscription({ ask, changed: options.listChanged })
    this.#isModern = isModern
    this.#garbage = new Garbage(server.name)
    const lines = new ServerLines(server, process, {
      line: (...line) => this.#line(...line),
      tooLong: (error) => guests === null && this.#tooLarge(error),
      tooLongEnd: (head, tail, error) => this.#guests !== null && this.#overlong(head, tail, error),
    })
    process.stdout.on('data', (chunk: Buffer) => {
      if (this.#closed !== null) return // it may go on for as long as it takes to end it
      contained(() => lines.push(chunk), this.#failed)
      if (lines.pending > overlongFactor * server.output.lineBytes)
        this.#break('it wrote a line without an end')
    })
    followEnd(process, inputOf(process), {
      // One that is being ended has its input closed by us
      deaf: (why, which) => (which === 'input' && this.leaving !== null) || this.#break(why),
      ended: (how) => this.close(this.leaving ?? this.#unavailable(how)),
    })
  }

  /** What the server said of itself in the handshake. */
  get introduction(): Introduction {
    return this.#introduction
  }

  /** Why nothing can be asked of it any more, or null. */
  get closed(): SallyportError | null {
    return this.#closed
  }

  /** Introduces itself, or repeats how a host did; a server that knows only the later era is spoken to in that. All in the time that is given. */
  async handshake(options: RequestOptions, host: Introduced | null = null): Promise<void> {
    const { server } = this.#options
    const { era, introduction } = await meet(server, (...asked) => this.request(...asked), host, options)
    this.#isModern = era === 'modern'
    this.#introduction = introduction
    if (this.#isModern) return
    this.#write(`${host?.initialized ?? '{"jsonrpc":"2.0","method":"notifications/initialized"}'}\n`)
  }

  /** Has a server of the later era tell of changes in its lists, where it says that it tells of any. */
  subscribe(): void {
    if (this.#isModern) this.#subscription.begin(listenParams(this.#introduction))
  }

  /** Parameters as they are sent: in the later era every request says who speaks. */
  dress(params: string): string {
    return this.#isModern ? inModernDress(params) : params
  }

  /** Sends a request of Sallyport's own; `params` is a JSON object. */
  ask(method: string, params: string, options: RequestOptions): Promise<Answer> {
    return this.request(method, this.dress(params), options)
  }

  /** Sends a request just as it is; `params` is a JSON object. Aborting or timing out tells the server to cancel. */
  async request(
    method: string,
    params: string,
    { timeoutMs, signal, late }: RequestOptions,
  ): Promise<Answer> {
    signal.throwIfAborted()
    if (this.#closed !== null) throw this.#closed
    const { name } = this.#options.server
    if (this.#waiting.size >= maxInFlight)
      throw new SallyportError('ERR_BUSY', `${name} has ${maxInFlight} requests in flight; wait for answers`)
    const id = this.nextId()
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#waiting.set(`n${id}`, { resolve, reject })
    const giveUp = (error: SallyportError): void => {
      if (!this.#waiting.delete(`n${id}`)) return
      this.#cancel(id, method, error.message)
      reject(error)
    }
    const inTime = whenLate(timeoutMs, () => giveUp(late ?? lateAnswer(name, method, timeoutMs)))
    const abort = (): void => giveUp(cancelledRequest(name, method, signal.reason))
    signal.addEventListener('abort', abort, { once: true })
    try {
      this.#send(id, method, params)
      return await promise
    } finally {
      inTime()
      signal.removeEventListener('abort', abort)
      this.#waiting.delete(`n${id}`)
    }
  }

  /** An id that no other request of this client's has. */
  nextId(): number {
    return ++this.#lastId
  }

  /** Says lines of guests, in latin1 reading; false where no more should be said before `drained`. */
  say(lines: string): boolean {
    const stdin = inputOf(this.#options.process)
    this.#guestBytes = lines.length
    return !stdin.writable || stdin.write(lines, 'latin1')
  }

  drained(next: () => void): void {
    inputOf(this.#options.process).once('drain', next)
  }

  /** Fails whatever waits, now and later. The first reason wins. */
  close(error: SallyportError): void {
    if (this.#closed !== null) return
    this.#closed = error
    this.#subscription.end()
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }

  #break(reason: string): void {
    this.close(this.leaving ?? this.#unavailable(reason))
    this.#broken.resolve(this.#unavailable(reason))
  }

  readonly #failed = (bug: SallyportError): void => {
    const detail = { code: bug.code, reason: bug.message }
    if (this.#closed === null) this.#options.note('server/failed', detail, bug)
    this.#break('Sallyport could not make anything of what it said; its log says more')
  }

  #send(id: number, method: string, params: string): void {
    const { server } = this.#options
    const line = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}\n`
    const { name, output } = server
    const what = `a request to ${name} is longer than output.line_bytes (${output.lineBytes}); send less or raise it`
    if (Buffer.byteLength(line) > output.lineBytes) throw new SallyportError('ERR_MESSAGE_TOO_LARGE', what)
    this.#write(line)
  }

  #cancel(id: number, method: string, reason: string): void {
    if (method !== 'initialize') this.#write(cancelledLine({ raw: `${id}`, key: `n${id}` }, reason), 'latin1')
  }

  #write(line: string, encoding: 'utf8' | 'latin1' = 'utf8'): void {
    const stdin = inputOf(this.#options.process)
    if (!stdin.writable) return
    stdin.write(line, encoding)
    if (stdin.writableLength > 2 * this.#options.server.output.lineBytes + this.#guestBytes)
      this.#break('it does not read its input')
  }

  #line(bytes: Buffer, text: string, start: number, end: number, looked: Looked | null): void {
    if (this.#closed !== null) return
    const envelope = readEnvelope(text, start, end, bytes)
    switch (envelope.kind) {
      case 'response':
        if (!this.#waiting.has(envelope.id?.key ?? '') && this.#guests?.answered(envelope) === true) return
        return this.#subscription.settles(envelope.id?.key) ? undefined : this.#settle(envelope, looked)
      case 'request':
        return this.#answer(envelope)
      case 'notification':
        if (!this.#subscription.hears(envelope)) this.#guests?.notified(envelope)
        if (envelope.method.endsWith('/list_changed')) return this.#options.listChanged()
        return this.#hear(envelope, looked)
      case 'invalid':
        return this.#notMcp(envelope)
    }
  }

  /** Progress and logs are for whoever waits for the call; a secret in them is for nobody. */
  #hear({ method, text, start, end }: Notification, looked: Looked | null): void {
    const { heard, process, note } = this.#options
    if (heard === undefined || !/^notifications\/(progress|message)$/.test(method)) return
    const line = text.slice(start, end)
    const { found } = looked ?? process.redactor?.redact(utf8(line, 0, line.length)) ?? { found: [] }
    if (found.length > 0) note('control/secret', { credentials: found })
    else heard(`${line}\n`)
  }

  #notMcp({ error, answers }: Extract<Envelope, { kind: 'invalid' }>): void {
    const unreadable = unreadableAnswer(this.#options.server.name, error.message)
    this.#waiting.get(answers?.key ?? '')?.reject(unreadable)
    this.#guests?.unreadable(answers, unreadable)
    const storm = this.#garbage.count()
    if (storm !== null) this.#break(storm.message)
    this.#options.note('control/garbage', { code: 'ERR_SERVER_PROTOCOL', reason: error.message })
  }

  #settle(response: Response, looked: Looked | null): void {
    const { id } = response
    const { process, server, note } = this.#options
    const waiter = id === null ? undefined : this.#waiting.get(id.key)
    if (id === null || waiter === undefined) return note('control/unexpected-answer', { id: id?.raw ?? null })
    try {
      const answer = answerOf(response, server.name, process.redactor, looked)
      if (answer === null) return
      waiter.resolve(answer)
    } catch (thrown) {
      if (!(thrown instanceof SallyportError)) throw thrown // whoever waits is told of a bug, too
      if (thrown instanceof SecretInResult) note('control/secret', { credentials: thrown.credentials })
      waiter.reject(thrown)
    }
    this.#waiting.delete(id.key)
  }

  /** In the host's stead, and there is no host. */
  #answer({ id, method }: Request): void {
    const { gate, server, note } = this.#options
    const route = gate.route('server', 'request', method)
    // A guest is no host of such a process: there is nobody to ask, and no end to what may be asked
    if (this.#guests !== null) return note('control/refused', { method })
    if (route === 'relay') return this.#write(resultLine(id, {}), 'latin1')
    if (route === 'roots') return this.#write(resultLine(id, rootsOf(server)), 'latin1')
    note('control/refused', { method })
    if (route === 'elicitation') return this.#write(resultLine(id, declined), 'latin1')
    const what = `${JSON.stringify(method)} reaches no host from a control call or a call’s own process`
    this.#write(errorLine(id, new SallyportError('ERR_METHOD_REFUSED', what, { method })), 'latin1')
  }

  /** Which answer it was nobody can tell, so whoever waits is told. */
  #tooLarge(error: SallyportError): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }

  /** Of a line that nobody read to its end; whom it is for is told, or else nobody knows whom it should not have kept. */
  #overlong(head: string, tail: string, error: SallyportError): void {
    const { id, hasMethod } = readHead(head)
    if (hasMethod) return
    const answers = id ?? lastId(tail)
    const waiter = this.#waiting.get(answers?.key ?? '')
    if (waiter !== undefined) waiter.reject(error)
    else if (this.#guests?.unreadable(answers, error) !== true) this.#break(error.message)
  }

  #unavailable(reason: string): SallyportError {
    return unavailable(this.#options.server.name, reason)
  }
}
