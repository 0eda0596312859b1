// What the records of many calls have in common: made once for all of them, so that it is written out once.
import type { Peer } from '../schema/governor.ts'

/** What a call is a call of, and who makes it; in its intent and in its outcome. */
export interface Target {
  readonly server: string
  readonly kind: 'tool' | 'method'
  readonly subject: string
  readonly identity: string
  readonly principal: string
  readonly peer: Peer
  readonly trust_epoch: number
}

/** What its decision stood on. */
export interface Basis {
  readonly session: string
  readonly declaration: number
  readonly policy: string
  readonly rule: string | null
  readonly reason: string
  readonly trust: string
}

/** Both, frozen. */
export interface About {
  readonly target: Target
  readonly basis: Basis
}

/** Times that something new is remembered before all is forgotten; hosts choose sessions and subjects */
const maxRemembered = 1000

/** Gives the same objects for as long as nothing in them changes. */
export class Abouts {
  /** Session -> subject */
  readonly #known = new Map<string, Map<string, About>>()
  #count = 0

  of(target: Target, basis: Basis): About {
    const ofSession = this.#known.get(basis.session)
    const known = ofSession?.get(target.subject)
    if (known !== undefined && isSameTarget(known.target, target) && isSameBasis(known.basis, basis))
      return known
    const about = Object.freeze({ target: Object.freeze(target), basis: Object.freeze(basis) })
    this.#remember(about)
    return about
  }

  #remember(about: About): void {
    this.#count += 1
    if (this.#count > maxRemembered) {
      this.#known.clear()
      this.#count = 1
    }
    const { session } = about.basis
    const ofSession = this.#known.get(session) ?? new Map<string, About>()
    this.#known.set(session, ofSession.set(about.target.subject, about))
  }
}

/** A peer is one object for as long as its connection lasts. */
const isSameTarget = (a: Target, b: Target): boolean =>
  a.server === b.server &&
  a.kind === b.kind &&
  a.subject === b.subject &&
  a.identity === b.identity &&
  a.principal === b.principal &&
  a.peer === b.peer &&
  a.trust_epoch === b.trust_epoch

const isSameBasis = (a: Basis, b: Basis): boolean =>
  a.session === b.session &&
  a.declaration === b.declaration &&
  a.policy === b.policy &&
  a.rule === b.rule &&
  a.reason === b.reason &&
  a.trust === b.trust
