// Permits: what lets one call through the boundary, once, for a short time, as it was decided and no other way.
import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import { BriefMap, oursAlone } from '../lib/brief-map.ts'

/** Everything that a permit is bound to. */
export interface Binding {
  /** `<server>/<tool>@<server-version>#<declaration-version>` */
  readonly identity: string
  /** SHA-256 of the canonical arguments */
  readonly argumentsDigest: string
  /** SHA-256 of the exact bytes that will be sent */
  readonly bytesDigest: string
  /** Side-effect classes of the tool's declaration, sorted */
  readonly sideEffects: readonly string[]
  /** Resource scopes of the tool's declaration, sorted */
  readonly resourceScopes: readonly string[]
  /** The host's opaque string, or null */
  readonly lineage: string | null
  /** The approval that it stands on, or null where a rule allowed */
  readonly approval: string | null
  readonly policyVersion: string
  /** Counter of the tool's trust that every reset raises */
  readonly trustEpoch: number
  readonly principal: string
}

/** A permit as its holder carries it. The secret MAC makes it worthless to whoever only knows its id. */
export interface Permit {
  readonly id: string
  /** Milliseconds on the permits' own clock */
  readonly expiresAt: number
  readonly binding: Binding
  readonly mac: string
}

/** The world at the boundary, as it is at the instant of dispatch. */
export interface Boundary extends Omit<Binding, 'approval'> {
  /** What the sandbox's mounts and egress can do: classes and scopes that a permit may name */
  readonly contains: (sideEffects: readonly string[], resourceScopes: readonly string[]) => boolean
  /** Whether the tool may be called at its present trust */
  readonly isEligible: boolean
  /** Name of the hold that stands on the server, tool or lineage, or null */
  readonly hold: string | null
}

/** The eight checks, in the order in which they are made. */
export const permitChecks = [
  'authenticity',
  'expiry',
  'identity',
  'arguments',
  'side-effects',
  'lineage',
  'trust',
  'checkpoint',
] as const

/** The check that a permit failed. */
export type PermitCheck = (typeof permitChecks)[number]

/** Gives the MAC of what a permit says. */
type Seal = (permit: Omit<Permit, 'mac'>) => string

/** A permit as it was issued. It is frozen, so its MAC is the same whenever it is worked out: when somebody asks for it. */
class Issued implements Permit {
  readonly id: string
  readonly expiresAt: number
  readonly binding: Binding
  readonly #seal: Seal

  constructor(id: string, expiresAt: number, binding: Binding, seal: Seal) {
    this.id = id
    this.expiresAt = expiresAt
    this.binding = Object.freeze(binding)
    this.#seal = seal
    Object.freeze(this)
  }

  get mac(): string {
    return this.#seal(this)
  }
}

/** A live permit as it is listed. */
export interface PermitView {
  readonly id: string
  readonly identity: string
  readonly principal: string
  readonly expiresInMs: number
}

/** What an operator said that ended a permit, as its caller is to read it. */
export interface LastWord {
  readonly reason: string
  /** It was the yes that the permit stood on which was taken back */
  readonly isNo: boolean
}

/** How many of what operators said is known yet */
const mostWords = 1024

/** Issues, checks and revokes permits. The table in memory is the authority: a permit that is not in it is no permit. */
export class Permits {
  readonly #key = createSecretKey(randomBytes(32))
  readonly #live = new BriefMap<Permit>(oursAlone)
  /** By the permit's id, oldest first */
  readonly #words = new Map<string, LastWord>()
  readonly #now: () => number
  #counter = 0
  readonly #prefix = randomBytes(9).toString('base64url')
  readonly #seal: Seal = (permit) => macOf(this.#key, permit)

  /** `now` is a monotonic clock in milliseconds, so that a jump of the wall clock lengthens nothing. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Issues a permit that ends after `ttlMs`, or with its first use. */
  issue(binding: Binding, ttlMs: number): Permit {
    this.#counter += 1
    const id = `p-${this.#prefix}-${this.#counter}`
    const permit = new Issued(id, this.#now() + ttlMs, binding, this.#seal)
    this.#live.set(id, permit)
    return permit
  }

  /**
   * Uses a permit up and returns the first check that fails, or null when the call may be sent.
   *
   * A permit is gone after this, whatever came of it.
   */
  spend(permit: Permit, boundary: Boundary): PermitCheck | null {
    const live = this.#live.take(permit.id)
    const { binding } = permit
    if (live === undefined || !this.#isAuthentic(permit, live)) return 'authenticity'
    if (this.#now() >= permit.expiresAt) return 'expiry'
    if (binding.identity !== boundary.identity || binding.principal !== boundary.principal) return 'identity'
    if (binding.argumentsDigest !== boundary.argumentsDigest || binding.bytesDigest !== boundary.bytesDigest)
      return 'arguments'
    if (!isSame(binding.sideEffects, boundary.sideEffects)) return 'side-effects'
    if (!isSame(binding.resourceScopes, boundary.resourceScopes)) return 'side-effects'
    if (!boundary.contains(binding.sideEffects, binding.resourceScopes)) return 'side-effects'
    if (binding.lineage !== boundary.lineage) return 'lineage'
    if (binding.trustEpoch !== boundary.trustEpoch || !boundary.isEligible) return 'trust'
    if (binding.policyVersion !== boundary.policyVersion) return 'trust'
    if (boundary.hold !== null) return 'checkpoint'
    return null
  }

  /** Lets a permit that has just passed live on until its dispatch, which waits for a process. */
  keep(permit: Permit): void {
    this.#live.set(permit.id, permit)
  }

  /** Uses up a permit that was kept: `authenticity` where it was revoked meanwhile, `expiry` where its time is over, else null. */
  redeem(id: string): PermitCheck | null {
    const permit = this.#live.take(id)
    if (permit === undefined) return 'authenticity'
    return this.#now() >= permit.expiresAt ? 'expiry' : null
  }

  /** Ends a permit that is not used after all. */
  end({ id }: Pick<Permit, 'id'>): void {
    this.#live.delete(id)
  }

  /** True where a permit lives that `which` says yes to. */
  some(which: (permit: Permit) => boolean): boolean {
    return this.#live.values().some(which)
  }

  /** Ends every live permit that `which` says yes to, on an operator's word where there is one; returns their ids. */
  revoke(which: (permit: Permit) => boolean, word: LastWord | null = null): readonly string[] {
    const ended = this.#live
      .values()
      .filter(which)
      .map(({ id }) => id)
    for (const id of ended) {
      this.#live.delete(id)
      if (word !== null) this.#words.set(id, word)
    }
    for (const id of this.#words.keys()) {
      if (this.#words.size <= mostWords) break
      this.#words.delete(id)
    }
    return ended
  }

  /** What an operator said that ended the permit, or null. */
  lastWord(id: string): LastWord | null {
    return this.#words.get(id) ?? null
  }

  /** The live permits, without what would let anybody use them. */
  list(): readonly PermitView[] {
    const now = this.#now()
    return this.#live
      .values()
      .filter(({ expiresAt }) => expiresAt > now)
      .map(({ id, expiresAt, binding }) => ({
        id,
        identity: binding.identity,
        principal: binding.principal,
        expiresInMs: Math.round(expiresAt - now),
      }))
  }

  /** The very object that was issued, and frozen, says what it said then; every other is held against its MAC. */
  #isAuthentic(permit: Permit, live: Permit): boolean {
    if (permit === live) return true
    if (!('mac' in permit)) return false // a spread takes none along
    // As text: a seal has one spelling, and what reads digits takes others, and what lies behind them.
    const expected = Buffer.from(this.#seal(permit))
    const got = Buffer.from(permit.mac)
    return got.length === expected.length && timingSafeEqual(got, expected)
  }
}

/** HMAC-SHA256, as hex, over all that a permit says. */
function macOf(key: KeyObject, { id, expiresAt, binding: b }: Omit<Permit, 'mac'>): string {
  const text = JSON.stringify([
    id,
    expiresAt,
    b.identity,
    b.argumentsDigest,
    b.bytesDigest,
    b.sideEffects,
    b.resourceScopes,
    b.lineage,
    b.approval,
    b.policyVersion,
    b.trustEpoch,
    b.principal,
  ])
  return createHmac('sha256', key).update(text).digest('hex')
}

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a === b || (a.length === b.length && a.every((item, n) => item === b[n]))
