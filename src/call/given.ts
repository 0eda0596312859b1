// Each yes on its way to a permit: until that is issued, an operator may take it back. And each that was taken back.
import type { ApprovalAnswer, ApprovalQuestion, Yes } from './ports.ts'

/** How many of those that were taken back are known to be so */
const mostRevoked = 1024

/** A yes that is followed. */
interface Followed {
  readonly question: ApprovalQuestion
  /** What took it back, or null */
  no: ApprovalAnswer | null
  /** Told of that */
  withdrawn: (() => void) | null
}

export class Given {
  readonly #answers = new Map<ApprovalAnswer, Followed>()
  /** The last of them, oldest first */
  readonly #revoked = new Set<string>()

  /** Follows a yes until it is claimed; returns it. */
  add(answer: ApprovalAnswer, question: ApprovalQuestion): ApprovalAnswer {
    this.#answers.set(answer, { question, no: null, withdrawn: null })
    return answer
  }

  /** The answer as it is by now; of no call any more from here on. */
  claim(answer: ApprovalAnswer): ApprovalAnswer {
    const no = this.#answers.get(answer)?.no ?? null
    this.#answers.delete(answer)
    return no ?? answer
  }

  /** Tells once where the yes is taken back before it is claimed. */
  watch(answer: ApprovalAnswer, withdrawn: () => void): void {
    const followed = this.#answers.get(answer)
    if (followed === undefined) return
    if (followed.no === null) followed.withdrawn = withdrawn
    else withdrawn()
  }

  /** True while a call goes by that approval and has no permit yet. */
  has(approval: string): boolean {
    return this.#by(approval).length > 0
  }

  /** Makes it a no for every such call. */
  withdraw(approval: string, no: ApprovalAnswer): void {
    for (const followed of this.#by(approval)) takeBack(followed, no)
  }

  /** Makes each yes a no whose question `which` says yes to; returns what approvals those were, and their scope. */
  void(
    which: (question: ApprovalQuestion) => boolean,
    no: ApprovalAnswer,
  ): ReadonlyMap<string, Yes['scope']> {
    const over = new Map<string, Yes['scope']>()
    for (const [answer, followed] of this.#answers) {
      if (!which(followed.question) || !takeBack(followed, no)) continue
      if (answer.granted) over.set(answer.approval, answer.scope)
    }
    return over
  }

  /** An operator took these approvals back, which stood: what calls have begun by them may not go on. */
  revoke(approvals: readonly string[]): void {
    for (const one of approvals) this.#revoked.add(one)
    for (const one of this.#revoked) if (this.#revoked.size > mostRevoked) this.#revoked.delete(one)
  }

  isRevoked(approval: string): boolean {
    return this.#revoked.has(approval)
  }

  #by(approval: string): readonly Followed[] {
    return [...this.#answers].flatMap(([answer, followed]) =>
      answer.granted && answer.approval === approval ? [followed] : [],
    )
  }
}

/** The first no stands: false where there was one. */
function takeBack(followed: Followed, no: ApprovalAnswer): boolean {
  if (followed.no !== null) return false
  followed.no = no
  followed.withdrawn?.()
  return true
}
