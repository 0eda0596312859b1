// Asking a person: one question, one deadline, an answer that is good for exactly what was asked.
import { randomBytes } from 'node:crypto'
import { SallyportError } from '../errors.ts'
import { whenLate } from '../lib/deadline.ts'
import type { Waiting } from '../schema/governor.ts'
import { Given } from './given.ts'
import { noOf, refusal } from './no.ts'
import type { ApprovalAnswer, ApprovalQuestion, Approver, Yes } from './ports.ts'
import { headOf, type Piece, pieceOf, summaryOf } from './question.ts'
import { type Covered, covers, type StandingApproval, yesBy } from './standing-approval.ts'

/** A question as the operator sees it. */
export interface PendingApproval extends Pick<ApprovalQuestion, 'call' | 'peer'> {
  readonly id: string
  readonly identity: string
  readonly principal: string
  readonly session: string
  readonly reason: string
  /** At most 200 characters, nothing invisible in them */
  readonly summary: string
  /** How the canonical arguments begin, nothing invisible in them */
  readonly text: string
  /** Where `text` of this question goes on, or null where that is all */
  readonly next: number | null
  /** Characters of the canonical arguments in all */
  readonly length: number
  readonly argumentsDigest: string
  readonly bytesDigest: string
  readonly waitedMs: number
  readonly deadlineMs: number
  /** How long a yes to more than this call would stand */
  readonly ttlMs: number
}

/** What changes about approvals, for subscribed operators and for the record. */
export type ApprovalHappening =
  | { readonly kind: 'asked'; readonly pending: PendingApproval }
  | { readonly kind: 'settled'; readonly id: string; readonly answer: ApprovalAnswer }
  | ({ readonly kind: 'withdrawn'; readonly id: string; readonly scope: Yes['scope'] } & QuestionEnd)
  | ({ readonly kind: 'ended'; readonly ids: readonly string[] } & QuestionEnd)

export interface ApprovalOptions {
  /** How long a question waits and a yes beyond one call stands, as settings have it at that moment */
  readonly limits: () => { readonly waitMs: number; readonly ttlMs: number }
  /** Monotonic milliseconds */
  readonly now: () => number
  /** Number of operator connections that listen; with none every question is a no */
  readonly listeners: () => number
  readonly tell: (happening: ApprovalHappening) => void
}

/** Why a question ends that nobody has answered, or an approval, and the operator on whose word, or null. */
export type QuestionEnd = Pick<Extract<ApprovalAnswer, { granted: false }>, 'by' | 'reason'>

interface Open {
  readonly question: ApprovalQuestion
  readonly text: string
  readonly view: Omit<PendingApproval, 'waitedMs'>
  readonly since: number
  readonly settle: (answer: ApprovalAnswer) => void
}

/** Most questions of one principal that wait at a time, and most characters of their arguments */
const most = { questions: 1024, characters: 16 * 1024 * 1024 }

/** Keeps the questions that wait and the approvals that stand. Ids are for operators; they are never sent to a host. */
export class Approvals implements Approver {
  readonly #options: ApprovalOptions
  readonly #open = new Map<string, Open>()
  readonly #standing = new Map<string, StandingApproval>()
  /** Said, and to stand once that is on record, unless what they stand on ends before */
  readonly #drafted = new Set<StandingApproval>()
  readonly #given = new Given()

  constructor(options: ApprovalOptions) {
    this.#options = options
  }

  async ask(question: ApprovalQuestion, { signal, asked }: Waiting): Promise<ApprovalAnswer> {
    const stands = this.covering(question)
    if (stands !== null) return this.#given.add(yesBy(stands), question)
    if (this.#options.listeners() === 0)
      return refusal(
        null,
        `${question.reason}, and no operator is listening for approvals: have one run sallyport approvals --watch, and call again`,
      )
    const text = question.text()
    if (!this.#hasRoom(question, text))
      return refusal(null, `${question.reason}, and too many questions of uid ${question.principal} wait`)
    asked?.() // which finds who has left meanwhile
    signal.throwIfAborted()
    return new Promise((resolve) => this.#wait(question, text, signal, resolve))
  }

  /** The approval that stands for a call, or null: then it is asked for. */
  covering(question: Covered): StandingApproval | null {
    return this.standing().find((approval) => covers(approval, question)) ?? null
  }

  /** The questions that wait, oldest first. */
  pending(): readonly PendingApproval[] {
    return [...this.#open.values()].map(({ view, since }) => ({
      ...view,
      waitedMs: Math.round(this.#options.now() - since),
    }))
  }

  /** The arguments of a question from `offset` on, a piece at a time; null when nothing of that id waits. */
  text(id: string, offset: number): Piece | null {
    const open = this.#open.get(id)
    return open === undefined ? null : pieceOf(open.text, offset)
  }

  /** The approval that a yes beyond one call would make, to be recorded before `approve` lets it stand, or `drop`ped; null when nothing of that id waits. */
  draft(id: string, scope: StandingApproval['scope'], by: string): StandingApproval | null {
    const open = this.#open.get(id)
    if (open === undefined) return null
    const { identity, argumentsDigest, repeatDigest } = open.question
    const { principal, session, policyVersion, trustEpoch } = open.question
    const expiresAt = this.#options.now() + this.#options.limits().ttlMs
    const asked = { identity, argumentsDigest, repeatDigest, principal, session, policyVersion, trustEpoch }
    const drafted = { id, scope, ...asked, by, expiresAt }
    this.#drafted.add(drafted)
    return drafted
  }

  /** What was drafted could not be recorded. */
  drop(drafted: StandingApproval | null): void {
    if (drafted !== null) this.#drafted.delete(drafted)
  }

  /**
   * Says yes, on record already; false when nothing of that id waits any more. What was drafted for more than one call
   * stands even then, since it was said and written, unless what it stood on has ended meanwhile.
   */
  approve(id: string, by: string, drafted: StandingApproval | null): boolean {
    const stands = drafted !== null && this.#drafted.delete(drafted)
    if (stands) this.#standing.set(id, drafted)
    const open = this.#open.get(id)
    const scope = drafted?.scope ?? 'once'
    open?.settle(this.#given.add({ granted: true, approval: id, scope, by }, open.question))
    return open !== undefined || stands
  }

  /** The questions that wait to which this approval is the answer, too: `cover` gives it, in the turn of each. */
  coveredBy(approval: StandingApproval): readonly string[] {
    return [...this.#open].flatMap(([id, { question }]) => (covers(approval, question) ? [id] : []))
  }

  /** Says yes to a question that waits, where an approval stands for it by now. */
  cover(id: string): void {
    const open = this.#open.get(id)
    const stands = open === undefined ? null : this.covering(open.question)
    if (open !== undefined && stands !== null) open.settle(this.#given.add(yesBy(stands), open.question))
  }

  /** Says no; false when nothing of that id waits. */
  deny(id: string, reason: string, by: string): boolean {
    const open = this.#open.get(id)
    open?.settle(noOf(reason, by))
    return open !== undefined
  }

  claim(answer: ApprovalAnswer): ApprovalAnswer {
    return this.#given.claim(answer)
  }

  watch(answer: ApprovalAnswer, withdrawn: () => void): void {
    this.#given.watch(answer, withdrawn)
  }

  /** True while a call goes by that yes and has no permit yet. */
  isGiven(id: string): boolean {
    return this.#given.has(id)
  }

  /** Takes a yes back for every call that has no permit yet, and tells of that. */
  withdraw(id: string, scope: Yes['scope'], reason: string, by: string): void {
    const no = noOf(reason, by)
    this.#given.withdraw(id, no)
    this.#options.tell({ kind: 'withdrawn', id, scope, by, reason: no.reason })
  }

  /** True where an operator took the approval back that stood: what a call has begun by it may not go on. */
  isRevoked(id: string): boolean {
    return this.#given.isRevoked(id)
  }

  /** Nobody listens any more: what waits is a no, as what is asked from now on is. */
  leave(): void {
    for (const { question, settle } of this.#open.values())
      settle(refusal(null, `${question.reason}, and the last operator who listened has left`))
  }

  /**
   * Puts approvals back that a journal told of; those whose time is over are dropped when they are looked for. None is given
   * more than a new one has, whatever the wall clock did in between.
   */
  restore(standing: StandingApproval): void {
    const latest = this.#options.now() + this.#options.limits().ttlMs
    this.#standing.set(standing.id, { ...standing, expiresAt: Math.min(standing.expiresAt, latest) })
  }

  /** Ends every standing approval that `which` says yes to, and every question, which `end` answers: returns their ids. */
  void(
    which: (
      approval: Pick<StandingApproval, 'identity' | 'principal' | 'session' | 'policyVersion'>,
    ) => boolean,
    { by, reason }: QuestionEnd = { by: null, reason: 'what was to be approved has changed' },
  ): readonly string[] {
    const ended = new Set(this.#end(which, { by, reason }))
    for (const [id, { question, settle }] of this.#open) {
      if (!which(question)) continue
      ended.add(id)
      settle(refusal(by, reason))
    }
    for (const [id, scope] of this.#given.void(which, refusal(by, reason)))
      this.#options.tell({ kind: 'withdrawn', id, scope, by, reason })
    return [...ended]
  }

  /** Ends the approvals that were good for one session, which is over. */
  endSession(session: string): void {
    const end = { by: null, reason: 'its session is over' }
    this.#end((one) => one.scope === 'session' && one.session === session, end)
  }

  /** What stands, and what is about to: a record that is being written is no reason to outlive what it was said of. */
  #end(which: (approval: StandingApproval) => boolean, end: QuestionEnd): readonly string[] {
    const over = [...this.#standing.values(), ...this.#drafted].filter(which)
    for (const one of over) {
      this.#standing.delete(one.id)
      this.#drafted.delete(one)
    }
    const ids = over.map(({ id }) => id)
    if (end.by !== null) this.#given.revoke(ids)
    if (ids.length > 0) this.#options.tell({ kind: 'ended', ids, ...end })
    return ids
  }

  /** The approvals that stand; those whose time is over are let go of. */
  standing(): readonly StandingApproval[] {
    const now = this.#options.now()
    for (const [id, { expiresAt }] of this.#standing) if (expiresAt <= now) this.#standing.delete(id)
    return [...this.#standing.values()]
  }

  /** What one host asks must leave operators able to read it, and the daemon to keep it. */
  #hasRoom({ principal }: ApprovalQuestion, text: string): boolean {
    let [questions, characters] = [0, 0]
    for (const open of this.#open.values())
      if (open.question.principal === principal) {
        questions += 1
        characters += open.text.length
      }
    return questions === 0 || (questions < most.questions && characters + text.length <= most.characters)
  }

  #wait(
    question: ApprovalQuestion,
    text: string,
    signal: AbortSignal,
    resolve: (answer: ApprovalAnswer) => void,
  ): void {
    const { limits, now, tell } = this.#options
    const { waitMs, ttlMs } = limits()
    const id = `a-${randomBytes(12).toString('base64url')}`
    const settle = (answer: ApprovalAnswer): void => {
      if (!this.#open.delete(id)) return
      inTime()
      signal.removeEventListener('abort', cancelled)
      tell({ kind: 'settled', id, answer })
      resolve(answer)
    }
    const cancelled = (): void => settle(refusal(null, SallyportError.from(signal.reason).message))
    const late = `no operator answered within ${waitMs} ms (approval.wait_ms); call again once one can`
    const inTime = whenLate(waitMs, () => settle({ ...refusal(null, late), isTimeout: true }))
    signal.addEventListener('abort', cancelled)
    const { call, peer, identity, principal, session, reason, argumentsDigest, bytesDigest } = question
    const view = {
      id,
      call,
      peer,
      identity,
      principal,
      session,
      reason,
      argumentsDigest,
      bytesDigest,
      summary: summaryOf(identity, text),
      ...headOf(text),
      deadlineMs: waitMs,
      ttlMs,
    }
    this.#open.set(id, { question, text, view, since: now(), settle })
    tell({ kind: 'asked', pending: { ...view, waitedMs: 0 } })
  }
}
