// What one session's server lists, asked in the session itself, behind the host's handshake and before its first call.
import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { Governor } from '../../schema/governor.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Conversation } from '../lanes/conversation.ts'
import type { Response } from '../message/envelope.ts'
import type { OwnRequests } from '../client/own-requests.ts'
import { listenParams, toldLists } from '../client/subscription.ts'
import {
  Compared,
  entriesIn,
  entryOf,
  type Introduction,
  introductionOf,
  readIntroduction,
  readSurface,
  type Surface,
  unknownServer,
} from '../client/surface.ts'
import { Survey } from '../client/survey.ts'
import { noList } from '../message/unavailable.ts'
import { isReadable, readAnswer } from '../message/read-answer.ts'
import { utf8 } from '../message/utf8.ts'

/** Entries of lists that are held against what the server says when it is asked for them itself */
const maxSuspects = 1024
/** Those of them that are remembered as lies: what has that many is not what was accepted, and one more changes nothing */
const maxLies = 64

export interface SessionSurfaceOptions {
  readonly server: ServerSettings
  readonly governor: Governor
  /** Most tools that may be accepted of the server */
  readonly toolLimit: number
  readonly talk: Conversation
  readonly instance: () => InstanceId | null
  readonly requests: OwnRequests
}

/** Known once the server was asked and the governor has compared; every wait ends within `initialize_ms` of ready. */
export class SessionSurface {
  readonly #options: SessionSurfaceOptions
  readonly #survey: Survey
  readonly #ready = Promise.withResolvers<void>()
  /** Null before anybody asked */
  #introduction: Introduction | null = null
  /** Prompts and templates that were compared last; null before the first time */
  #compared: Compared | null = null
  /** Those that the host was given since, and were not among them, each with the method that gave it */
  readonly #suspects = new Map<string, string>()
  /** Digests of those that the server did not list to us when it was asked: they stand beside what is compared from then on */
  readonly #lies = new Set<string>()
  #isReady = false
  /** Why nothing can be known any more, or null */
  #over: SallyportError | null = null

  constructor(options: SessionSurfaceOptions) {
    this.#options = options
    this.#survey = new Survey({ server: options.server, ask: () => this.#ask() })
    this.#ready.promise.catch(() => undefined)
  }

  /** True while somebody waits for a server that is not ready. */
  get isWanted(): boolean {
    return !this.#isReady && this.#over === null && this.#survey.isAsking
  }

  /** The lists of whose changes the server says that it tells. */
  get told(): readonly string[] {
    return this.#introduction === null ? [] : toldLists(this.#introduction)
  }

  /** Null when it is known; otherwise resolves when it is. */
  known(): Promise<void> | null {
    return this.#survey.known()
  }

  /** The server takes requests from now on; what the host said of being initialized has gone before. */
  ready(): void {
    this.#isReady = true
    this.#ready.resolve()
  }

  /** The host has said that it is initialized. */
  begin(): void {
    this.#survey.begin()
  }

  changed(): void {
    this.#survey.changed()
  }

  /** Reads the answer to the host's handshake; one that says something else than the first did is compared beside that. */
  introduce({ text, result }: Response): void {
    if (result === null) return
    const said = utf8(text, result.start, result.end)
    // What is too much to be read says nothing: then it is asked for everything.
    const now = isReadable(said) ? readIntroduction(readAnswer('initialize', said)) : null
    const first = this.#introduction
    this.#introduction = first ?? now
    if (first === null || isDeepStrictEqual(first, now)) return
    this.#introduction = { ...first, version: now?.version ?? first.version, capabilities: null }
    if (now?.instructions !== first.instructions && this.#lies.size < maxLies)
      this.#lies.add(hash('sha256', now?.instructions ?? said))
    this.#survey.changed()
  }

  /** The host got the answer to a list: with anything in it that was not compared, all is, before what is governed goes on. */
  listed(method: string, { text, result }: Response): void {
    if (result === null) return
    const shown = entriesIn(method, utf8(text, result.start, result.end))
    const fresh = shown.filter((entry) => this.#compared?.has(entry) !== true).slice(0, maxSuspects)
    if (fresh.length === 0) return
    for (const entry of fresh) if (this.#suspects.size < maxSuspects) this.#suspects.set(entry, method)
    if (this.#compared !== null) this.#survey.changed() // else they are compared when it is asked
  }

  /** False for an entry of a list, a JSON text, that was never compared with what was accepted. */
  isKnown(method: string, text: string): boolean {
    return this.#compared?.lacks(method, entryOf(text)) !== true
  }

  /** Its process is lost, and there is no other. */
  fail(error: SallyportError): void {
    this.end(error)
  }

  /** Ends every wait, now and later. */
  end(error: SallyportError): void {
    this.#over ??= error
    this.#ready.reject(error)
    this.#survey.end()
  }

  async #ask(): Promise<void> {
    await this.#ready.promise
    if (this.#over !== null) throw this.#over
    const { server, governor, toolLimit, talk, instance, requests } = this.#options
    const { initializeMs } = server.timeouts
    const request = (method: string, params: string) => requests.request(method, params, !talk.isLegacy)
    const read = async (): Promise<Surface> => {
      // A host of the later era may ask another process of the server who it is, or none: what it is compared by is not its host's choice.
      if (!talk.isLegacy) this.#introduction ??= await introductionOf(request)
      const told = this.#introduction === null || talk.isLegacy ? null : listenParams(this.#introduction)
      if (told !== null) requests.subscribe(told) // before the lists, so that no change comes between
      return readSurface(request, this.#introduction ?? unknownServer, toolLimit)
    }
    const surface = await within(read(), initializeMs, () => noList(server))
    const id = instance()
    this.#compareShown(surface)
    const rest = this.#lies.size === 0 ? surface.rest : { ...Object(surface.rest), lies: [...this.#lies] }
    if (id !== null) await governor.observe({ ...surface, server, instance: id, rest })
  }

  /** Of a list that is longer than what was read of it nothing can be told; of the other one it can. */
  #compareShown(surface: Surface): void {
    const compared = new Compared(surface)
    for (const [entry, method] of this.#suspects)
      if (this.#lies.size < maxLies && compared.lacks(method, entry)) this.#lies.add(hash('sha256', entry))
    this.#compared = compared
    this.#suspects.clear()
  }
}
