// A subscription of Sallyport's own: a server of the later era tells of changes in its lists to whoever asked, and to nobody else.
import type { Notification } from '../message/envelope.ts'
import { idAt, only, subscriptionIn } from '../shared/lines.ts'
import type { Introduction } from './surface.ts'

export const listen = 'subscriptions/listen'

/** Capability -> the changes of its list, as a subscription names them */
export const changesOfLists = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
} as const

/** Parameters that ask for every change the server says it tells of; null where it tells of none. */
export function listenParams(introduction: Introduction): string | null {
  const told = toldLists(introduction)
  if (told.length === 0) return null
  const notifications = Object.fromEntries(told.map((list) => [changesOfLists[list], true]))
  return JSON.stringify({ notifications })
}

/** The lists of whose changes a server says that it tells. */
export function toldLists({ capabilities }: Introduction): readonly (keyof typeof changesOfLists)[] {
  const lists = Object.keys(changesOfLists) as (keyof typeof changesOfLists)[]
  return lists.filter((name) => {
    const capability: unknown = Object.hasOwn(capabilities ?? {}, name) ? capabilities?.[name] : null
    return Reflect.get(Object(capability), 'listChanged') === true
  })
}

/** Before a subscription that is over is asked for again, ms; each pause is twice the one before, until a subscription has lasted the longest */
const [firstPauseMs, longestPauseMs] = [1000, 60_000]
/** Requests for it that are remembered: what comes late of one is for nobody else */
const maxKeys = 16

interface SubscriptionPorts {
  /** Sends the request, and returns its key */
  readonly ask: (params: string) => string
  /** The lists may have changed, and nobody was told */
  readonly changed: () => void
}

/**
 * One subscription. However the server ends or refuses it, it is asked for again, at growing pauses, and what is listed behind
 * it: a server that takes none is still asked for its lists.
 */
export class Subscription {
  readonly #ports: SubscriptionPorts
  #params = ''
  /** Of the requests for it; the last one is open, or was */
  #keys: readonly string[] = []
  #askedAt = 0
  #pauseMs = firstPauseMs
  #retry: NodeJS.Timeout | null = null
  #isOver = false

  constructor(ports: SubscriptionPorts) {
    this.#ports = ports
  }

  /** Asks for it, once; with null there is nothing to be told. */
  begin(params: string | null): void {
    if (params === null || this.#keys.length > 0) return
    this.#params = params
    this.#ask()
  }

  /** True for a notification of it, and for the one that ends it. */
  hears({ method, text, params }: Notification): boolean {
    const ends = method === 'notifications/cancelled' ? only(params?.inner ?? [], 'requestId') : null
    if (ends !== null && this.settles(idAt(text, ends)?.key)) return true
    const about = idAt(text, subscriptionIn(text, params))?.key
    return about !== undefined && this.#keys.includes(about)
  }

  /** True for the key of a request for it, which an answer ends. */
  settles(key: string | undefined): boolean {
    if (key === undefined || !this.#keys.includes(key)) return false
    if (key === this.#keys.at(-1)) this.#askLater()
    return true
  }

  /** It is not asked for any more. */
  end(): void {
    this.#isOver = true
    if (this.#retry !== null) clearTimeout(this.#retry)
  }

  #ask(): void {
    this.#askedAt = performance.now()
    this.#keys = [...this.#keys, this.#ports.ask(this.#params)].slice(-maxKeys)
  }

  #askLater(): void {
    if (this.#isOver || this.#retry !== null) return
    if (performance.now() - this.#askedAt > longestPauseMs) this.#pauseMs = firstPauseMs
    this.#retry = setTimeout(() => {
      this.#retry = null
      this.#ask()
      this.#ports.changed() // behind it, so that no change comes between
    }, this.#pauseMs).unref()
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs)
  }
}
