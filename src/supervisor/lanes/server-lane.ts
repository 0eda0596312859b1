// Judges what the server says before the host hears it: a message at all, an awaited answer, a request that it may make.
import { SallyportError } from '../../errors.ts'
import { elements, JsonScanError, type Member, type Span } from '../../lib/json-scan.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { declined, errorLine, resultLine, rootsOf } from '../message/answers.ts'
import type { Redactor } from '../../schema/credentials.ts'
import { noRoom } from '../../schema/room.ts'
import type { HostRequest } from './conversation.ts'
import { readEnvelope } from '../message/envelope.ts'
import type { Envelope, Notification, Request, Response } from '../message/envelope.ts'
import { askedPlainly } from '../questions/as-task.ts'
import { doesAsk } from '../questions/input-required.ts'
import { nothingEnds, oversized, refused, tooManyAsked } from './answer-parts.ts'
import { answerWithoutOurs } from '../message/credential-meta.ts'
import { mostGarbage } from '../message/garbage.ts'
import { handshaken } from './handshaken.ts'
import { evidenceOf } from './held.ts'
import { inputAsked, notAsked, readdressed } from './input-asked.ts'
import { introduction } from './instructions.ts'
import { anew, leakIn } from './leak.ts'
import type { Looked } from '../message/line-look.ts'
import type { MessageId } from '../message/message-id.ts'
import { declaredWith, questionOf, whyNotAsked } from './person.ts'
import { idAt, only } from '../shared/lines.ts'
import { SecretInResult } from '../message/secret-in-result.ts'
import { serverMay, whyNotHost } from '../questions/server-may.ts'
import { whyNotSent } from '../questions/url-required.ts'
import { lastId, readHead } from '../message/unread.ts'
import { unreadableAnswer } from '../message/unavailable.ts'
import { utf8 } from '../message/utf8.ts'
import { filterList, shownIn } from './listing.ts'
import { taskNoticeRefused } from './task-notice.ts'
import { batchVersion, type Kept, rejoinBatch, type Verdict, type Wire } from './wire.ts'

/** Judges lines of the server; answers the requests that the host must not see. */
export class ServerLane {
  readonly #wire: Wire
  readonly #redactor: Redactor | null
  /** Only answers pass while a probe is out: the process may not become the session's */
  isMuted = false
  /** Lines that were no message, ever */
  garbage = 0

  constructor(wire: Wire, redactor: Redactor | null) {
    this.#wire = wire
    this.#redactor = redactor
  }

  /**
   * Judges the line from `start` to `end`, in latin1 reading, which is not blank; `said` is what `readLine` gives of it,
   * `looked` what was found of secrets in it where it is long.
   */
  judge(said: Envelope | null, text: string, start: number, end: number, looked: Looked | null): Verdict {
    return said === null ? this.#batch(text, start, end, looked) : this.#message(said, looked)
  }

  /**
   * A line was longer than `output.line_bytes` and nothing of it is left but its ends. Answers the request that it
   * belongs to and returns true; false when that cannot be told, and then the session cannot go on.
   */
  overlong(head: string, tail: string, error: SallyportError): boolean {
    const { id, hasMethod } = readHead(head)
    const key = (id ?? lastId(tail))?.key
    this.#wire.note('session/too-large', { code: error.code, reason: error.message })
    if (hasMethod) {
      if (id !== null) this.#wire.toServer(errorLine(id, error))
      return true
    }
    return key !== undefined && this.#failed(key, error)
  }

  /** A line that is not UTF-8 is nobody's message; whoever waits for it, as far as that can be read, is told. */
  notText(text: string, start: number, end: number): Verdict {
    const { id, hasMethod } = readHead(text.slice(start, end))
    return this.#unreadable(hasMethod ? null : id, 'it is not UTF-8')
  }

  /** Answers a request in the stead of an answer that nobody can read; false when nobody asked. */
  #failed(key: string, error: SallyportError): boolean {
    const request = this.#wire.talk.settle(key)
    if (request === null || request === 'late') return request === 'late'
    this.#wire.unreadable(request, error)
    this.#wire.toHost(errorLine(request.id, error))
    return true
  }

  /** A long one with a secret is withheld whole: nobody has looked which of its messages has it. */
  #batch(text: string, start: number, end: number, looked: Looked | null): Verdict {
    if (this.#wire.talk.protocolVersion !== batchVersion)
      return this.#garbage('a batch in a version without batches')
    try {
      const all = elements(text, start, end, { bounded: true })
      if (looked !== null && looked.found.length > 0) return this.#withheld(all, text, looked)
      const most = this.garbage + mostGarbage
      const kept: Kept[] = []
      for (const element of all) {
        if (this.garbage > most) return 'drop' // whoever counts it lets go of the server
        const verdict = this.#message(readEnvelope(text, element.start, element.end), looked)
        if (verdict === 'pass') kept.push({ text: text.slice(element.start, element.end), isChanged: false })
        else if (verdict !== 'drop') kept.push({ text: verdict.replacement.trimEnd(), isChanged: true })
      }
      return rejoinBatch(all.length, kept)
    } catch (thrown) {
      if (!(thrown instanceof JsonScanError)) throw thrown
      return this.#garbage(thrown.message)
    }
  }

  #withheld(all: readonly Span[], text: string, looked: Looked): Verdict {
    const error = new SecretInResult(this.#wire.server.name, looked)
    this.#wire.note('session/secret', { kind: 'batch', credentials: looked.found })
    for (const { start, end } of all) {
      const said = readEnvelope(text, start, end)
      const id = said.kind === 'response' ? said.id : null
      if (id !== null && !this.#failed(id.key, error))
        anew(errorLine(id, error).trimEnd(), (again) => this.#clean(again))
    }
    return 'drop'
  }

  #message(envelope: Envelope, looked: Looked | null): Verdict {
    const { name } = this.#wire.server
    const leak = this.#redactor === null ? null : leakIn(envelope, this.#redactor, name, looked)
    if (leak === null) return this.#clean(envelope)
    this.#wire.note('session/secret', { kind: envelope.kind, credentials: leak.found })
    if (leak.answers !== null && this.#failed(leak.answers.key, leak.error)) return 'drop'
    return anew(leak.line, (again) => this.#clean(again))
  }

  #clean(envelope: Envelope): Verdict {
    switch (envelope.kind) {
      case 'response':
        return this.#response(envelope)
      case 'request':
        return this.isMuted ? 'drop' : this.#request(envelope)
      case 'notification':
        return this.isMuted ? 'drop' : this.#notification(envelope)
      case 'invalid':
        return this.#unreadable(envelope.answers, envelope.error.message)
    }
  }

  /** Whoever asked for what can't be read is told: the host, or Sallyport itself. */
  #unreadable(id: MessageId | null, reason: string): Verdict {
    const error = unreadableAnswer(this.#wire.server.name, reason)
    if (id !== null && !this.#failed(id.key, error))
      anew(errorLine(id, error).trimEnd(), (again) => this.#clean(again))
    return this.#garbage(reason)
  }

  #garbage(reason: string): Verdict {
    this.garbage++
    this.#wire.note('session/garbage', { code: 'ERR_SERVER_PROTOCOL', reason })
    return 'drop'
  }

  #response(response: Response): Verdict {
    // The server could not tell which message it failed on; the host may know.
    if (response.id === null && response.error !== null)
      return this.isMuted || whyNotSent(this.#wire.server, response, () => this.#wire.talk.declared) !== null
        ? 'drop'
        : 'pass'
    if (response.id === null) return this.#garbage('a result for nobody')
    if (this.#wire.own(response)) return 'drop'
    const request = this.#wire.talk.settle(response.id.key)
    if (request === null || request === 'late') {
      const type = request === null ? 'session/unexpected-answer' : 'session/late-answer'
      this.#wire.note(type, { sender: 'server', id: response.id.raw })
      return 'drop'
    }
    return this.#answered(request, response)
  }

  /** On record is what was said; the host is given that without what only Sallyport says. */
  #answered(request: HostRequest, response: Response): Verdict {
    const hasRoom = this.#wire.holding.hasRoomFor(response.end - response.start)
    const large = oversized(this.#wire.server, request, response) ?? (hasRoom ? null : noRoom())
    if (large !== null) this.#wire.note('session/too-large', { code: large.code, reason: large.message })
    const error = request.route === 'handshake' ? handshaken(this.#wire, response, large) : large
    const verdict =
      error === null ? this.#bare(request, response) : { replacement: errorLine(request.id, error) }
    return this.#wire.answered(request, response) ? verdict : 'drop'
  }

  #bare(request: HostRequest, response: Response): Verdict {
    const bare = answerWithoutOurs(response)
    return bare === null
      ? this.#answer(request, response)
      : anew(bare, (again) => (again.kind === 'response' ? this.#answer(request, again) : 'drop'))
  }

  #answer(request: HostRequest, response: Response): Verdict {
    const { result, text } = response
    const { server, talk } = this.#wire
    const unsent = whyNotSent(server, response, () => declaredWith(request, talk.declared))
    if (unsent !== null) return notAsked(server, request, 'elicitation', unsent)
    if (result === null) return readdressed(request, response)
    const isList = request.route === 'filter' || request.route === 'list' || request.method === 'tasks/list'
    // Hosts of the later era take a question by whatever result it comes; here none may, whatever is enabled, nor after a handshake.
    const mayAsk = !isList && request.line !== null && !talk.isLegacy
    if (!mayAsk && doesAsk(text, result))
      return notAsked(server, request, 'input', talk.isLegacy ? notAfterHandshake : notByThis)
    if (isList) return this.#list(request, response, result)
    if (request.line !== null) return inputAsked(this.#wire, request, request.line, response, result)
    if (request.route === 'handshake' || request.route === 'probe')
      return introduction(request, response, result, this.#wire)
    return 'pass'
  }

  /** A list loses what policy denies; where that is nothing, not a byte of it is looked at. */
  #list(request: HostRequest, response: Response, result: Member): Verdict {
    const isShown = shownIn(request, this.#wire)
    if (isShown === null) return 'pass'
    try {
      const list = filterList(request.method, response.text, response, result, isShown)
      if (list.text === null) return 'pass'
      this.#wire.note('session/list-filtered', { method: request.method, hidden: list.hidden })
      return { replacement: `${list.text}\n` }
    } catch (thrown) {
      return { replacement: errorLine(request.id, SallyportError.from(thrown)) }
    }
  }

  #request(request: Request): Verdict {
    const { gate, server, talk } = this.#wire
    // In the era without handshakes a server writes no requests, and nobody writes answers to it.
    if (!talk.isLegacy) return this.#refused(request.method)
    const route = gate.route('server', 'request', request.method)
    if (route === 'roots') return this.#reply(resultLine(request.id, rootsOf(server)))
    const asked = route === 'elicitation' && serverMay(server, route) ? valueOf(request) : null
    const reason = route === 'elicitation' ? whyNotAsked(this.#wire, request, asked) : null
    if (reason !== null) {
      this.#wire.note('session/declined', { method: request.method, reason })
      return this.#reply(resultLine(request.id, declined))
    }
    const why = whyNotHost(server, () => talk.declared, route, asked)
    const isFull = talk.isServerFull || talk.serverRequests.has(request.id.key)
    const isBusy = isFull ? tooManyAsked() : null
    const error = why === null ? isBusy : refused(server.name, request.method, why)
    if (error !== null) {
      this.#refused(request.method, error)
      return this.#reply(errorLine(request.id, error))
    }
    const isQuestion = route === 'elicitation'
    const opened = { id: request.id, route, inTime: null, question: null }
    talk.openServer(isQuestion ? questionOf(this.#wire, request, asked) : opened)
    const plain = isQuestion ? askedPlainly(request) : null
    return plain === null ? 'pass' : { replacement: `${plain}\n` }
  }

  #notification(notification: Notification): Verdict {
    const { method, params, text } = notification
    const { gate, server, talk } = this.#wire
    const route = gate.route('server', 'notification', method)
    if (!serverMay(server, route)) return this.#refused(method)
    if (method.endsWith('/list_changed')) this.#wire.listChanged()
    if (this.#wire.hears(notification)) return 'drop'
    if (params !== null && method.startsWith('notifications/tasks')) {
      if (!this.#wire.taskSaid(evidenceOf(text, params))) {
        this.#wire.note('session/refused', { sender: 'server', method, code: 'ERR_TASK_NOT_FOUND' })
        return 'drop'
      }
      const untold = taskNoticeRefused(this.#wire, notification, params)
      if (untold !== null) return this.#refused(method, untold)
    }
    if (route !== 'cancel') return 'pass'
    const id = idAt(text, only(params?.inner ?? [], 'requestId'))
    const ended = id === null ? null : talk.serverEnds(id)
    if (ended === null) return this.#refused(method, nothingEnds())
    if (ended !== true) this.#wire.cancelled(ended, 'server')
    return 'pass'
  }

  #refused(method: string, error: SallyportError | null = null): Verdict {
    const why = error === null ? { code: 'ERR_METHOD_REFUSED' } : { code: error.code, reason: error.message }
    this.#wire.note('session/refused', { sender: 'server', method, ...why })
    return 'drop'
  }

  #reply(line: string): Verdict {
    this.#wire.toServer(line)
    return 'drop'
  }
}

const notByThis = 'no answer to this method may ask'
const notAfterHandshake = 'in a session that began with initialize no answer may ask'

const valueOf = ({ text, params }: Request): unknown =>
  params === null ? null : parseJson(utf8(text, params.start, params.end))
