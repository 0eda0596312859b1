// How what is called stands, against what was accepted and what is listed now: one object for each tool of one acceptance.
import type { Proposal } from '../schema/governor.ts'
import { type AcceptedSurface, type AcceptedTool, identityOf } from './declaration.ts'
import { isSameServer, type Live, whatOf } from './live.ts'
import type { Standing } from './ports.ts'

type AcceptedStanding = Standing & { readonly state: 'accepted'; readonly tool: AcceptedTool }

interface Last {
  readonly surface: AcceptedSurface
  readonly subject: string
  readonly standing: AcceptedStanding
}

/** Keeps them for as long as their acceptance is kept. */
export class Standings {
  readonly #known = new WeakMap<AcceptedSurface, Map<string, AcceptedStanding>>()
  /** The one that was asked for last: each call asks three times */
  #last: Last | null = null

  /** `live` is null where no instance is named: then what was accepted is what there is to go by. */
  of(accepted: AcceptedSurface, live: Live | null, kind: Proposal['kind'], subject: string): Standing {
    const { server } = accepted
    const mend = `see sallyport accept ${server}`
    if (live !== null && !isSameServer(accepted, live))
      return {
        state: 'replaced',
        reason: `${server} is ${whatOf(live)}, accepted was ${whatOf(accepted)}; ${mend}`,
      }
    if (kind === 'method') return ofMethod(accepted, live, subject, mend)
    const standing = this.#ofTool(accepted, subject)
    if (standing === null) {
      if (live?.digests.has(subject) === true)
        return { state: 'unaccepted', reason: `${server} lists ${subject}, which was not accepted; ${mend}` }
      const why = live?.unreadable.get(subject)
      if (why !== undefined)
        return {
          state: 'unaccepted',
          reason: `${server} lists ${subject} as nobody can look at it, so it can't be accepted: ${why}`,
        }
      const among =
        live?.isFull === true ? ' among those that are looked at; raise tools.per_server, or' : ';'
      const reason = `${server} has no tool of that name${among} see sallyport tools ${server}`
      return { state: 'unknown', reason }
    }
    if (live !== null && live.digests.get(subject) !== standing.tool.surfaceDigest) {
      if (!live.digests.has(subject))
        return {
          state: 'unknown',
          reason: live.isFull
            ? `${server} does not list ${subject} any more among the tools that are looked at; raise tools.per_server, or see sallyport tools ${server}`
            : `${server} does not list ${subject} any more; see sallyport tools ${server}`,
        }
      return {
        state: 'changed',
        reason: `${server} lists ${subject} otherwise than when it was accepted; ${mend}`,
      }
    }
    return standing
  }

  /** The same text for as long as the acceptance is kept: to compare it with itself takes no time. */
  identity(accepted: AcceptedSurface, tool: string): string {
    return this.#ofTool(accepted, tool)?.identity ?? identityOf(accepted, tool)
  }

  /** Null where no such tool was accepted. */
  #ofTool(surface: AcceptedSurface, subject: string): AcceptedStanding | null {
    if (this.#last?.surface === surface && this.#last.subject === subject) return this.#last.standing
    const tool = surface.tools.get(subject)
    if (tool === undefined) return null
    const ofSurface = this.#known.get(surface) ?? new Map<string, AcceptedStanding>()
    const known = ofSurface.get(subject) ?? acceptedAs(surface, subject, tool)
    this.#known.set(surface, ofSurface.set(subject, known))
    this.#last = { surface, subject, standing: known }
    return known
  }
}

const acceptedAs = (surface: AcceptedSurface, subject: string, tool: AcceptedTool): AcceptedStanding => {
  const identity = identityOf(surface, subject)
  return Object.freeze({
    state: 'accepted',
    identity,
    declarationVersion: surface.declarationVersion,
    tool,
  })
}

function ofMethod(accepted: AcceptedSurface, live: Live | null, subject: string, mend: string): Standing {
  const { server, declarationVersion } = accepted
  if (live === null || live.restDigest === accepted.restDigest)
    return { state: 'accepted', identity: identityOf(accepted, subject), declarationVersion, tool: null }
  const what = 'the instructions, prompts or resource templates'
  return { state: 'changed', reason: `${what} of ${server} are not those that were accepted; ${mend}` }
}
