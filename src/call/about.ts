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

/** Calls whose `About` is remembered before all are forgotten; hosts choose sessions and subjects */
const maxRemembered = 1000

/** Gives the same objects for as long as nothing in them changes. */
export class Abouts {
  readonly #known = new Map<string, About>()

  of(target: Target, basis: Basis): About {
    const key = `${basis.session} ${target.kind} ${target.subject}`
    const known = this.#known.get(key)
    if (known !== undefined && isSame(known.target, target) && isSame(known.basis, basis)) return known
    if (this.#known.size >= maxRemembered) this.#known.clear()
    const about = Object.freeze({ target: Object.freeze(target), basis: Object.freeze(basis) })
    this.#known.set(key, about)
    return about
  }
}

/** Both have the same members; a peer is one object for as long as its connection lasts. */
function isSame<T extends object>(a: T, b: T): boolean {
  for (const name in a) if (a[name] !== b[name]) return false
  return true
}
