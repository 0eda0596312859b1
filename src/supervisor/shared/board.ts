// Between one process and the sessions that share it: each message finds the one that it belongs to, and no other.
//
//   session's id 7, token "a" ──> 41, 41 ──> process       ids and tokens are numbers that no two sessions have at once;
//   session's id 7, token "a" <── 41, 41 <── process       what names a number that is not open goes nowhere
import type { SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import { LineSplitter } from '../../lib/lines.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { cancelledLine, errorLine } from '../message/answers.ts'
import { type Notification, readUnambiguous, type Request, type Response } from '../message/envelope.ts'
import type { Guests } from './guests.ts'
import type { MessageId } from '../message/message-id.ts'
import type { Running } from '../ports.ts'
import { type Edit, edited, idAt, marksOf, only, subscriptionIn } from './lines.ts'
import { type Guest, Seat } from './seat.ts'
import { soon } from '../../lib/deadline.ts'

/** The way to the process; ids of its own requests are of the same count. */
export interface Speaker {
  nextId(): number
  /** Says lines, in latin1 reading; false where no more should be said before `drained` */
  say(lines: string): boolean
  drained(next: () => void): void
}

export interface BoardOptions {
  readonly server: ServerSettings
  readonly instance: InstanceId
  readonly process: Running
  readonly speaker: () => Speaker
  readonly note: (type: string, detail: Readonly<Record<string, unknown>>) => void
}

/** A request that the process has. */
interface Open {
  readonly seat: Seat
  readonly id: MessageId
  readonly method: string
  /** The session's progress token as it wrote it; null where it gave none, or one that could be no id either */
  readonly token: string | null
  readonly wantsLogs: boolean
}

interface Seated {
  readonly lines: LineSplitter
  readonly left: () => void
}

interface Saying {
  readonly seat: Seat
  readonly bytes: Buffer
  readonly done: () => void
}

/** Requests of one session that it took back and that are remembered, since their answer may be on its way */
const maxTakenBack = 1024
/** What may wait for one session that does not read, in lines of the greatest length */
const unreadLines = 4
/** How long what it said last may take to be read, ms */
const lastWordMs = 50

export class SharedBoard implements Guests {
  readonly #options: BoardOptions
  readonly #seats = new Map<Seat, Seated>()
  readonly #open = new Map<string, Open>()
  readonly #queue: Saying[] = []
  #isFull = false
  #said: string[] = []
  #over: string | null = null

  constructor(options: BoardOptions) {
    this.#options = options
  }

  /** Sessions that sit here. */
  get guests(): number {
    return this.#seats.size
  }

  /** A further one; `left` is told once it is gone */
  seat(guest: Guest, left: () => void): Seat {
    const { server, instance, process } = this.#options
    const { lineBytes } = server.output
    const seat: Seat = new Seat({
      server: server.name,
      instance,
      process,
      guest,
      limitBytes: unreadLines * lineBytes,
      forward: (...saying) => this.#forward(...saying),
      left: () => this.#leave(seat),
    })
    // Both lanes have judged its length; a credential may have made it longer.
    const lines = new LineSplitter(2 * lineBytes + 1_048_576, {
      line: (...line) => this.#said.push(this.#outgoing(seat, ...line)),
      overlong: () => undefined,
      overlongEnd: () => undefined,
    })
    this.#seats.set(seat, { lines, left })
    if (this.#over !== null) this.#lose(seat, this.#over)
    return seat
  }

  /** Takes an answer of the process; false when none of the sessions has asked. */
  answered(response: Response): boolean {
    const { id, idSpan, result, text } = response
    const open = this.#settle(id)
    if (open === null || id === null) return false
    const edits: Edit[] = [[idSpan, open.id.raw]]
    const subscription = open.method === listen ? subscriptionIn(text, result) : null
    if (subscription !== null && idAt(text, subscription)?.key === id.key)
      edits.push([subscription, open.id.raw])
    open.seat.say(edited(response, edits))
    return true
  }

  /** An answer can't be read; false when none of the sessions has asked for it. */
  unreadable(id: MessageId | null, error: SallyportError): boolean {
    const open = this.#settle(id)
    open?.seat.say(errorLine(open.id, error))
    return open !== null
  }

  /** Takes a notification to whom it is for; what says of nobody whose it is, and is not for all, goes nowhere. */
  notified(notification: Notification): void {
    const { method, params, text } = notification
    const subscription = subscriptionIn(text, params)
    if (method === 'notifications/cancelled') return this.#ended(notification, subscription)
    if (subscription !== null)
      return this.#toOpen(notification, subscription, (open) => open.method === listen && !isTakenBack(open))
    if (method === 'notifications/progress') {
      const at = only(params?.inner ?? [], 'progressToken')
      return this.#toOpen(notification, at, hasToken, ({ token }) => token)
    }
    if (method.endsWith('/list_changed'))
      return this.#seats.forEach((_, seat) => seat.say(edited(notification, [])))
    if (method !== 'notifications/message') return this.#stray(method)
    const asked = [...this.#open.values()].filter(({ wantsLogs }) => wantsLogs)
    const [first] = asked
    if (first === undefined || asked.some(({ seat }) => seat !== first.seat)) return this.#stray(method)
    first.seat.say(edited(notification, []))
  }

  /** Nothing is sent to the process any more; what it has may be answered until the end. */
  rest(reason: string): void {
    this.#over ??= reason
    this.#queue.length = 0
  }

  /** The process is lost, and with it whatever is open; what it said last is still heard. */
  end(reason: string): void {
    this.rest(reason)
    const { stdout } = this.#options.process
    const heard = new Promise<void>((done) => stdout.once('end', done).once('close', done))
    const isHeard = stdout.readableEnded || stdout.destroyed
    void soon(isHeard ? Promise.resolve() : heard, lastWordMs).then(() => {
      this.#open.clear()
      for (const seat of this.#seats.keys()) this.#lose(seat, reason)
      return undefined
    })
  }

  #lose(seat: Seat, reason: string): void {
    const left = this.#seats.get(seat)?.left
    this.#seats.delete(seat)
    seat.lose(reason)
    left?.()
  }

  /** The process ends what a session has open there: of a subscription nothing else may come. */
  #ended(notification: Notification, subscription: Edit[0] | null): void {
    const { text, params, method } = notification
    const at = only(params?.inner ?? [], 'requestId')
    const id = idAt(text, at)
    const open = this.#open.get(id?.key ?? '')
    if (at === null || id === null || open === undefined) return this.#stray(method)
    const edits: Edit[] = [[at, open.id.raw]]
    if (subscription !== null) {
      if (idAt(text, subscription)?.key !== id.key) return this.#stray(method)
      edits.push([subscription, open.id.raw])
    }
    open.seat.say(edited(notification, edits))
    if (open.method === listen) this.#noLonger(open.seat, Number(id.key.slice(1)))
  }

  #toOpen(
    notification: Notification,
    at: Edit[0] | null,
    fits: (open: Open) => boolean,
    literal: (open: Open) => string | null = ({ id }) => id.raw,
  ): void {
    const open = this.#open.get(idAt(notification.text, at)?.key ?? '')
    const own = open === undefined || !fits(open) ? null : literal(open)
    if (open === undefined || own === null || at === null) return this.#stray(notification.method)
    open.seat.say(edited(notification, [[at, own]]))
  }

  #stray(method: string): void {
    this.#options.note('shared/for-nobody', { sender: 'server', method: method.slice(0, 128) })
  }

  #settle(id: MessageId | null): Open | null {
    const open = id === null ? undefined : this.#open.get(id.key)
    if (id === null || open === undefined) return null
    this.#open.delete(id.key)
    open.seat.waited(Number(id.key.slice(1)))
    if (keyOf(open.seat.sent.get(open.id.key)) === id.key) open.seat.sent.delete(open.id.key)
    return open
  }

  /** One piece of a session at a time, in the order in which sessions come: a full pipe is no session's own. */
  #forward(seat: Seat, bytes: Buffer, done: () => void): void {
    if (this.#over !== null) return
    this.#queue.push({ seat, bytes, done })
    this.#flush()
  }

  /** Whoever is told to go on may say the next at once, which comes here again: what there is to know of the pipe is noted before. */
  #flush(): void {
    while (!this.#isFull) {
      const next = this.#queue.shift()
      if (next === undefined) return
      this.#seats.get(next.seat)?.lines.push(next.bytes)
      const speaker = this.#options.speaker()
      this.#isFull = !speaker.say(this.#said.join(''))
      this.#said = []
      if (this.#isFull) speaker.drained(this.#drained)
      next.done()
    }
  }

  readonly #drained = (): void => {
    this.#isFull = false
    this.#flush()
  }

  /** What is sent of what a session says; in this era that is requests, and that it waits for one no longer. */
  #outgoing(seat: Seat, bytes: Buffer, text: string, start: number, end: number): string {
    const envelope = readUnambiguous(text, start, end, bytes)
    if (envelope.kind === 'request') return this.#ask(seat, envelope)
    const isCancel = envelope.kind === 'notification' && envelope.method === 'notifications/cancelled'
    return isCancel ? this.#takeBack(seat, envelope) : ''
  }

  #ask(seat: Seat, request: Request): string {
    const { id: at, progressToken, wantsLogs } = marksOf(request)
    if (at === null) return ''
    const { id, method, text } = request
    const number = this.#options.speaker().nextId()
    const token = idAt(text, progressToken)?.raw ?? null
    this.#open.set(keyOf(number), { seat, id, method, token, wantsLogs })
    seat.sent.set(id.key, number)
    if (method !== listen) seat.awaits(number)
    const edits: Edit[] = [[at, `${number}`]]
    if (progressToken !== null) edits.push([progressToken, `${number}`])
    return edited(request, edits)
  }

  /** A session takes back what is its own, and nothing else. */
  #takeBack(seat: Seat, notification: Notification): string {
    const at = only(notification.params?.inner ?? [], 'requestId')
    const number = seat.sent.get(idAt(notification.text, at)?.key ?? '')
    if (number === undefined || at === null) return ''
    this.#noLonger(seat, number)
    return edited(notification, [[at, `${number}`]])
  }

  /** Nobody waits for it any more, and its answer may be on its way. */
  #noLonger(seat: Seat, number: number): void {
    seat.waited(number)
    seat.takenBack.push(number)
    if (seat.takenBack.length > maxTakenBack) this.#forget(seat.takenBack.shift())
  }

  #forget(number: number | undefined): void {
    const open = this.#open.get(keyOf(number))
    if (open === undefined) return
    this.#open.delete(keyOf(number))
    if (open.seat.sent.get(open.id.key) === number) open.seat.sent.delete(open.id.key)
  }

  #leave(seat: Seat): void {
    const left = this.#seats.get(seat)?.left
    this.#seats.delete(seat)
    const taken = new Set(seat.takenBack.map(keyOf))
    const own = [...this.#open].filter(([, open]) => open.seat === seat)
    const lines = own.flatMap(([key]) => {
      this.#open.delete(key)
      return taken.has(key) ? [] : [cancelledLine({ raw: key.slice(1), key }, 'its session is over')]
    })
    if (lines.length > 0) this.#options.speaker().say(lines.join(''))
    left?.()
  }
}

const listen = 'subscriptions/listen'
const isTakenBack = ({ seat, id }: Open): boolean => seat.takenBack.includes(seat.sent.get(id.key) ?? -1)
const hasToken = ({ token }: Open): boolean => token !== null
const keyOf = (number: number | undefined): string => `n${number ?? ''}`
