// Judges what the host says before the server hears it: well-formed, unambiguous, known, allowed.
import { SallyportError } from '../../errors.ts'
import { elements, JsonScanError, skipSpace, type Span } from '../../lib/json-scan.ts'
import { cancelledLine, errorLine, unknownMethodLine } from '../message/answers.ts'
import { ambiguousMeta, ambiguousParams, ambiguousRelayed } from '../message/params.ts'
import { answerWithoutOurs, withoutCredentials } from '../message/credential-meta.ts'
import { type Envelope, type Notification, readUnambiguous, type Request } from '../message/envelope.ts'
import { asksOf, heldOf, kindAt, longestText, noLineage } from './held.ts'
import { withoutQuestionTasks } from '../questions/as-task.ts'
import { declining } from '../questions/input-required.ts'
import { unasked } from '../questions/unasked.ts'
import { declaredAtStart, declaredBy } from '../questions/declared.ts'
import { whyNotListen } from './listen.ts'
import { isElsewhere } from './conversation.ts'
import { type MessageId, messageId } from '../message/message-id.ts'
import { confideAnswer, confideAnswers, tooLate } from './person.ts'
import { serverMay } from '../questions/server-may.ts'
import { saysWhoSpeaks, whyNotShared } from '../shared/refusal.ts'
import { batchVersion, type Kept, rejoinBatch, type Verdict, type Wire } from './wire.ts'

/** Judges lines of the host; answers those that do not pass. */
export class HostLane {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  /** Judges the line from `start` to `end`, which is valid UTF-8 in latin1 reading; `said` is what `readLine` gives of it. */
  judge(said: Envelope | null, text: string, start: number, end: number): Verdict {
    if (said !== null) return this.#message(said)
    return skipSpace(text, start) >= end ? 'drop' : this.#batch(text, start, end)
  }

  /** Answers a line that is not read: too long, not UTF-8, or nobody's message. The request that it `answers` is answered, too. */
  refuse(
    error: SallyportError,
    id: Parameters<typeof errorLine>[0] = null,
    answers: MessageId | null = null,
  ): void {
    this.#unanswered(answers, error)
    this.#wire.toHost(errorLine(id, error))
    this.#wire.note('session/refused', { code: error.code, reason: error.message })
  }

  #batch(text: string, start: number, end: number): Verdict {
    const version = this.#wire.talk.protocolVersion
    if (version !== batchVersion) {
      const reason = `a batch passes in protocol version ${batchVersion} only, and this session has ${version ?? 'none yet'}`
      this.refuse(new SallyportError('ERR_BATCH_REFUSED', `${reason}; send one message a line`))
      return 'drop'
    }
    try {
      const all = elements(text, start, end, { bounded: true })
      if (all.length === 0)
        this.refuse(new SallyportError('ERR_INVALID_REQUEST', 'a batch holds at least one message'))
      return rejoinBatch(all.length, [...this.#elements(text, all)])
    } catch (thrown) {
      if (!(thrown instanceof JsonScanError)) throw thrown
      const code = thrown.kind === 'parts' ? 'ERR_MESSAGE_TOO_LARGE' : 'ERR_PARSE'
      this.refuse(new SallyportError(code, thrown.message))
      return 'drop'
    }
  }

  *#elements(text: string, all: readonly Span[]): Iterable<Kept> {
    for (const { start, end } of all) {
      const envelope = readUnambiguous(text, start, end)
      if (envelope.kind === 'request' && ['initialize', 'server/discover'].includes(envelope.method)) {
        this.refuse(
          new SallyportError('ERR_BATCH_REFUSED', `${envelope.method} cannot be part of a batch`),
          envelope.id,
        )
        continue
      }
      const verdict = this.#message(envelope)
      if (verdict === 'pass') yield { text: text.slice(start, end), isChanged: false }
      else if (verdict !== 'drop') yield { text: verdict.replacement.trimEnd(), isChanged: true }
    }
  }

  #message(envelope: Envelope): Verdict {
    switch (envelope.kind) {
      case 'request':
        return this.#request(envelope)
      case 'notification':
        return this.#bare(envelope, envelope, (bare) => this.#notification(bare))
      case 'response': {
        const request = envelope.id === null ? null : this.#wire.talk.settleServer(envelope.id.key)
        if (request !== null) {
          confideAnswer(this.#wire, request, envelope)
          const bare = answerWithoutOurs(envelope)
          return bare === null ? 'pass' : { replacement: `${bare}\n` }
        }
        this.#wire.note('session/unexpected-answer', { sender: 'host', id: envelope.id?.raw ?? null })
        return 'drop'
      }
      case 'invalid':
        this.refuse(envelope.error, envelope.id, envelope.answers)
        return 'drop'
    }
  }

  /** A server waits for no answer that can't be read: it is told so, in the host's stead. */
  #unanswered(id: MessageId | null, { code, message }: SallyportError): void {
    const request = id === null ? null : this.#wire.talk.settleServer(id.key)
    if (request === null) return
    const reason = `the answer of the host cannot be read: ${message}`
    this.#wire.toServer(errorLine(request.id, new SallyportError(code, reason)))
  }

  #request(said: Request): Verdict {
    return this.#bare(said, withoutQuestionTasks(this.#inTime(said)), (bare) => this.#ask(bare))
  }

  /** Judges what is left of a message without what only Sallyport may say in it; `said` is as it came. */
  #bare<Said extends Request | Notification>(
    said: Said,
    message: Said,
    judge: (bare: Said) => Verdict,
  ): Verdict {
    const bare = withoutCredentials(message)
    if (bare !== null)
      this.#wire.note('session/credentials-stripped', { sender: 'host', method: message.method })
    const { text, start, end } = bare ?? message
    const verdict = judge(bare ?? message)
    return verdict === 'pass' && text !== said.text ? { replacement: `${text.slice(start, end)}\n` } : verdict
  }

  /** The request, or where it answers questions whose time was over, or that nobody may ask, one that declines them. */
  #inTime(request: Request): Request {
    const { server } = this.#wire
    if (request.params?.inner.some(({ key }) => key === 'inputResponses') !== true) return request
    confideAnswers(this.#wire, request)
    const late = tooLate(this.#wire, request)
    const never = unasked(server, request)
    if (late.length + never.length === 0) return request
    const timeout = `the answer came after elicitation.timeout_ms (${server.elicitation.timeoutMs})`
    const reason = never.length === 0 ? timeout : 'the server may not ask for what was answered'
    this.#wire.note('session/declined', { method: request.method, reason })
    return declining(request, [...late, ...never])
  }

  #ask(request: Request): Verdict {
    const { talk, gate } = this.#wire
    const route = gate.route('host', 'request', request.method)
    const error = talk.isOpen(request.id)
      ? new SallyportError(
          'ERR_INVALID_REQUEST',
          `the id ${request.id.raw} is still in flight; every request needs its own`,
        )
      : talk.isFull
        ? new SallyportError('ERR_BUSY', 'too many requests are in flight in this session; wait for answers')
        : (whyNotShared(this.#wire.server, request) ?? this.#judge(request, route))
    if (error !== null) {
      this.#wire.toHost(errorLine(request.id, error))
      this.#wire.note('session/refused', {
        method: request.method,
        ...error.details,
        code: error.code,
        reason: error.message,
      })
      return 'drop'
    }
    if (route === 'handshake') {
      const { text, params } = request
      talk.introduce(wordsOf(text, params) ?? '{}', declaredAtStart(text, params))
      this.#wire.initializing()
    }
    const probe = { id: request.id, isWhole: route === 'probe' && saysWhoSpeaks(request) }
    if (route === 'probe' && (talk.isLegacy || !this.#wire.probing(probe))) {
      this.#wire.toHost(unknownMethodLine(request.id))
      return 'drop'
    }
    const isGoverned = route === 'call' || route === 'govern'
    const line = isGoverned && !talk.isLegacy ? request.text.slice(request.start, request.end) : null
    const isTold = line !== null || talk.isLegacy // by the line itself, or by the handshake
    const declares = isTold ? null : declaredBy(request.text, request.params?.inner ?? [])
    const { id, method } = request
    const opened = { id, wireId: id, method, route, line, declares, round: 0 }
    const asks = asksOf(request, route)
    if (asks.length > 0 || route === 'filter' || route === 'list') {
      this.#wire.hold(heldOf(opened, request, asks))
      return 'drop'
    }
    talk.open(opened)
    return 'pass'
  }

  /** Null when the request is one that policy can be asked about, or that needs no asking. */
  #judge(request: Request, route: ReturnType<Wire['gate']['route']>): SallyportError | null {
    switch (route) {
      case 'relay':
      case 'filter':
      case 'list':
      case 'handshake':
      case 'probe':
        return ambiguousRelayed(request)
      case 'call':
      case 'govern':
      case 'listen': {
        const { method, text, params } = request
        if (params !== null && text.charCodeAt(params.start) !== 123)
          return new SallyportError(
            'ERR_INVALID_REQUEST',
            `params of ${method} must be an object, got ${kindAt(text, params)}`,
          )
        const found = params?.inner ?? []
        const ambiguous = ambiguousParams(method, found) ?? ambiguousMeta(request)
        if (ambiguous !== null) return ambiguous
        const meta = found.find((one) => one.key === '_meta')
        const got = noLineage(text, meta)
        if (got !== null)
          return new SallyportError(
            'ERR_INVALID_REQUEST',
            `a lineage is a string of at most ${longestText} bytes, got ${got}`,
          )
        if (route === 'listen') return whyNotListen(request)
        const name = route === 'call' ? found.find((one) => one.key === 'name') : null
        if (name === null || (name !== undefined && isName(text, name))) return null
        return new SallyportError('ERR_INVALID_REQUEST', nameless)
      }
      case 'cancel':
      case 'sampling':
      case 'elicitation':
      case 'roots':
      case 'client-task':
      case 'refuse':
        return new SallyportError(
          'ERR_METHOD_REFUSED',
          `${JSON.stringify(request.method)} is not a request that a host may send`,
          { method: request.method },
        )
    }
  }

  #notification(notification: Notification): Verdict {
    const { gate, server, talk } = this.#wire
    const { method } = notification
    const route = gate.route('host', 'notification', method)
    if (method === 'notifications/initialized') {
      if (talk.introduced !== null) talk.introduced.initialized ??= wordsOf(notification.text, notification)
      this.#wire.initialized()
    }
    if (route === 'relay') return 'pass'
    if (route === 'cancel') return this.#cancel(notification)
    // The roots are the declared mounts; what the host's own roots do is not the server's business.
    if (route === 'roots') return 'drop'
    if (route === 'client-task' && serverMay(server, route)) return 'pass'
    if (gate.route('host', 'request', method) !== 'refuse') {
      this.refuse(
        new SallyportError('ERR_INVALID_REQUEST', `${method} needs an id: it has an answer`, { method }),
      )
    } else
      this.#wire.note('session/refused', {
        method,
        code: 'ERR_METHOD_REFUSED',
        reason: 'unknown notification',
      })
    return 'drop'
  }

  #cancel(notification: Notification): Verdict {
    const found = notification.params?.inner ?? []
    const named = found.find(({ key }) => key === 'requestId')
    if (ambiguousParams(notification.method, found) !== null) {
      this.#wire.note('session/refused', { method: notification.method, code: 'ERR_MESSAGE_AMBIGUOUS' })
      return 'drop'
    }
    const id = named === undefined ? null : messageId(notification.text.slice(named.start, named.end))
    if (id === null) {
      const reason = 'its requestId is no id'
      this.#wire.note('session/refused', { method: notification.method, code: 'ERR_INVALID_REQUEST', reason })
      return 'drop'
    }
    if (this.#wire.takeBack(id)) return 'drop'
    const request = this.#wire.talk.cancel(id)
    if (request !== null) this.#wire.cancelled(request, 'host')
    if (request !== null && isElsewhere(request)) return 'drop'
    if (request === null || request.wireId === request.id) return 'pass'
    return { replacement: cancelledLine(request.wireId, 'cancelled by the host') }
  }
}

const nameless = `tools/call needs a params.name that is a string of at most ${longestText} bytes`
const isName = (text: string, { start, end }: Span): boolean =>
  text.charCodeAt(start) === 34 && end - start <= longestText

/** What stands there, byte for byte; the text is UTF-8 in latin1 reading. */
function wordsOf(text: string, span: Span | null): string | null {
  return span === null ? null : Buffer.from(text.slice(span.start, span.end), 'latin1').toString('utf8')
}
