// The lists that a session's host has read: it is told where policy has made another of one, since of that its server knows nothing.
import { members } from '../../lib/json-scan.ts'
import type { Conversation, HostRequest } from '../lanes/conversation.ts'
import type { Notification } from '../message/envelope.ts'
import { idAt, only, subscriptionIn, subscriptionKey } from '../shared/lines.ts'
import { changesOfLists } from '../client/subscription.ts'

/** What can be read -> the list that a notification speaks of */
const listOf: ReadonlyMap<string, List> = new Map([
  ['tools/list', 'tools'],
  ['prompts/list', 'prompts'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resources'],
])

type List = keyof typeof changesOfLists

export interface ReadListsOptions {
  readonly talk: Conversation
  /** The lists of whose changes the server says in its handshake that it tells */
  readonly told: () => readonly string[]
  readonly toHost: (line: string) => void
}

/**
 * A host is told once for each time that it has read a list, and only where it can expect to be: as the handshake says, or in the
 * later era in a subscription of its own, as far as the server has acknowledged that.
 */
export class ReadLists {
  readonly #options: ReadListsOptions
  /** Since the host was last told that they have changed */
  readonly #read = new Set<List>()
  /** Subscription -> which of these its server tells in it */
  readonly #acknowledged = new WeakMap<HostRequest, readonly string[]>()

  constructor(options: ReadListsOptions) {
    this.#options = options
  }

  /** The host gets the answer to that. */
  answered(method: string): void {
    const list = listOf.get(method)
    if (list !== undefined) this.#read.add(list)
  }

  /** The host gets that of its server. */
  hears({ method, text, params }: Notification): void {
    const changed = /^notifications\/(\w+)\/list_changed$/.exec(method)?.[1]
    if (changed !== undefined) this.#read.delete(changed as List) // of what is no list of these nothing is there
    if (method !== 'notifications/subscriptions/acknowledged') return
    const request = this.#options.talk.hostRequests.get(idAt(text, subscriptionIn(text, params))?.key ?? '')
    const found = only(params?.inner ?? [], 'notifications')
    if (request === undefined || found === null || text.charCodeAt(found.start) !== 123) return
    const isTrue = ({ start, end }: { start: number; end: number }): boolean =>
      text.slice(start, end) === 'true'
    const named = new Set(
      members(text, found.start, found.end)
        .filter(isTrue)
        .map(({ key }) => key),
    )
    this.#acknowledged.set(
      request,
      Object.values(changesOfLists).filter((name) => named.has(name)),
    )
  }

  /** What policy lets be seen of the lists may be something else from now on. */
  changed(): void {
    for (const list of this.#read) if (this.#tell(list)) this.#read.delete(list)
  }

  /** False where the host expects to hear nothing of that. */
  #tell(list: List): boolean {
    const { talk, told, toHost } = this.#options
    const say = (params: string): void =>
      toHost(`{"jsonrpc":"2.0","method":"notifications/${list}/list_changed"${params}}\n`)
    if (talk.isLegacy) {
      if (!told().includes(list)) return false
      say('')
      return true
    }
    const listening = talk.hostRequests
      .values()
      .filter((request) => this.#acknowledged.get(request)?.includes(changesOfLists[list]))
    for (const { id } of listening) say(`,"params":{"_meta":{"${subscriptionKey}":${id.raw}}}`)
    return listening.length > 0
  }
}
