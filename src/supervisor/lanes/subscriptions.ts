// What the host of a session is subscribed to: it lasts, so policy is asked about it again where that may say something else by now.
import { SallyportError } from '../../errors.ts'
import type { Admission, Governor, Outcome } from '../../schema/governor.ts'
import { noRoom } from '../../schema/room.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { spellings } from '../../lib/key-folding.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { confusableWithin, type Notification } from '../message/envelope.ts'
import { utf8 } from '../message/utf8.ts'
import { idAt, only, subscriptionIn } from '../shared/lines.ts'
import type { Conversation, HostRequest } from './conversation.ts'
import type { SessionHolding } from './holding.ts'
import type { Held, Wire } from './wire.ts'

export interface SubscriptionOptions {
  readonly server: ServerSettings
  readonly governor: Pick<Governor, 'lasts' | 'decide'>
  readonly talk: Pick<Conversation, 'isLate'>
  readonly holding: SessionHolding
  readonly note: Wire['note']
  /** Has the server give up, in the older era, what the host is subscribed to */
  readonly unsubscribe: (uri: string) => void
  /** Ends a request of the later era whose subscription lasts as long as it is open */
  readonly withdraw: (request: HostRequest, error: SallyportError) => void
}

/** A request that begins a subscription, or in the older era ends one. */
export interface Subscribing {
  readonly request: HostRequest
  /** Of the older era: the resource's address, where it names one */
  readonly uri: string | null
  /** What policy was asked about, and let pass */
  readonly things: readonly { readonly admission: Admission; readonly arguments: unknown }[]
  readonly bytes: number
  /** Policy has ended it */
  isOver: boolean
}

const [subscribe, unsubscribe] = ['resources/subscribe', 'resources/unsubscribe'] as const

/** Bounded by what may be kept for the session; each subscription ends with its host, its server, or the policy that it stands on. */
export class Subscriptions {
  readonly #options: SubscriptionOptions
  /** Open requests of the later era */
  readonly #listening = new Set<Subscribing>()
  /** Of the older era, and not answered yet */
  readonly #asked = new Set<Subscribing>()
  /** Of the older era, by address */
  readonly #standing = new Map<string, Subscribing>()
  /** Addresses to which policy has ended the subscription, until the host has another one */
  readonly #ended = new Set<string>()
  #bytes = 0

  constructor(options: SubscriptionOptions) {
    this.#options = options
    options.holding.add(() => this.#bytes)
  }

  /** Why no further one is begun, or null. */
  obstacle({ request, line }: Held): SallyportError | null {
    if (!begins(request)) return null
    const most = 4 * this.#options.server.output.lineBytes
    const bytes = this.#bytes + line.length
    if (bytes <= most) return this.#options.holding.fits(bytes) ? null : noRoom()
    const what = `subscriptions of over ${most} bytes would be kept for this session`
    return new SallyportError('ERR_BUSY', `${what}; end some first`)
  }

  /** What was admitted is sent now; null where that is about no subscription. */
  sent({ request, asks, line }: Held, admissions: readonly Admission[]): Subscribing | null {
    if (!begins(request) && request.method !== unsubscribe) return null
    const things = admissions.map((admission, n) => ({ admission, arguments: asks[n]?.arguments }))
    const uri: unknown = Reflect.get(Object(things[0]?.arguments), 'uri')
    const bytes = begins(request) ? line.length : 0
    const said = { request, uri: typeof uri === 'string' ? uri : null, things, bytes, isOver: false }
    if (request.route === 'listen') {
      this.#listening.add(said)
      for (const address of addressesOf(said)) this.#ended.delete(address)
    } else if (begins(request)) this.#asked.add(said)
    this.#bytes += bytes
    return said
  }

  /** What was sent is over. One that is not refused may have begun: it stands, and policy may be another one by now. */
  over(said: Subscribing, kind: Outcome['kind']): void {
    const { request, uri } = said
    this.#bytes -= said.bytes
    this.#listening.delete(said)
    this.#asked.delete(said)
    if (request.route === 'listen' || uri === null || said.isOver) return
    if (request.method === unsubscribe) return kind === 'result' ? this.#forget(uri) : undefined
    if (kind === 'error' || kind === 'lost') return
    this.#forget(uri)
    this.#standing.set(uri, said)
    this.#bytes += said.bytes
    this.#ended.delete(uri)
    this.#review(said)
  }

  /** Ends what policy does not let pass any more. */
  review(): void {
    for (const said of [...this.#listening, ...this.#asked, ...this.#standing.values()]) this.#review(said)
  }

  /** True for news of what policy has ended the subscription to, or would let nobody subscribe to. */
  silences({ method, text, params }: Notification): boolean {
    const isSilenced = this.#isOver(text, params) || (method === updated && this.#isDenied(text, params))
    if (isSilenced)
      this.#options.note('session/refused', { sender: 'server', method, code: 'ERR_POLICY_DENIED' })
    return isSilenced
  }

  #isOver(text: string, params: Notification['params']): boolean {
    const of = idAt(text, subscriptionIn(text, params))
    return of !== null && this.#options.talk.isLate(of.key)
  }

  /** The address may be of something below the one that the host has named, or one that it never named. */
  #isDenied(text: string, params: Notification['params']): boolean {
    const { server, governor } = this.#options
    if (confusableWithin(params?.inner ?? [], spelt) !== null) return true // of what it is depends on its reader
    const at = only(params?.inner ?? [], 'uri')
    const value: unknown = at === null ? null : parseJson(utf8(text, at.start, at.end))
    const uri = typeof value === 'string' ? value : null
    if (uri === null ? this.#ended.size > 0 : this.#ended.has(uri)) return true
    const said = uri === null ? {} : { uri }
    return governor.decide({ server, kind: 'method', subject: subscribe, arguments: said }).action === 'deny'
  }

  #review(said: Subscribing): void {
    if (said.isOver) return
    const { server, governor, withdraw } = this.#options
    for (const { admission, arguments: named } of said.things) {
      const { kind, subject } = admission
      const error = governor.lasts(admission, { server, kind, subject, arguments: named })
      if (error === null) continue
      said.isOver = true
      if (said.request.route !== 'listen') return said.uri === null ? undefined : this.#end(said.uri)
      for (const address of addressesOf({ things: [{ admission, arguments: named }] }))
        if (!this.#isNamed(address)) this.#ended.add(address)
      return withdraw(said.request, error)
    }
  }

  /** Whether another request of the later era goes on that names the address. */
  #isNamed(address: string): boolean {
    return [...this.#listening].some((said) => !said.isOver && addressesOf(said).includes(address))
  }

  #end(uri: string): void {
    this.#forget(uri)
    this.#ended.add(uri)
    this.#options.unsubscribe(uri)
  }

  #forget(uri: string): void {
    this.#bytes -= this.#standing.get(uri)?.bytes ?? 0
    this.#standing.delete(uri)
  }
}

/** The addresses of resources that policy was asked about. */
const addressesOf = ({ things }: Pick<Subscribing, 'things'>): readonly string[] =>
  things
    .map(({ arguments: named }): unknown => Reflect.get(Object(named), 'uri'))
    .filter((uri) => typeof uri === 'string')

const updated = 'notifications/resources/updated'
const spelt = spellings(['uri'])

const begins = ({ method, route }: HostRequest): boolean => method === subscribe || route === 'listen'
