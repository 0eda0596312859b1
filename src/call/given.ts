// Each yes on its way to a permit: until that is issued, an operator may take it back. And each that was taken back.
import type { ApprovalAnswer, ApprovalQuestion } from './ports.ts'

/** How many of those that were taken back are known to be so */
const mostRevoked = 1024

export class Given {
  /** With the no that took it back, or null */
  readonly #answers = new Map<ApprovalAnswer, ApprovalAnswer | null>()
  /** What each was said of */
  readonly #questions = new Map<ApprovalAnswer, ApprovalQuestion>()
  /** Told of that */
  readonly #watchers = new Map<ApprovalAnswer, () => void>()
  /** The last of them, oldest first */
  readonly #revoked = new Set<string>()

  /** Follows a yes until it is claimed; returns it. */
  add(answer: ApprovalAnswer, question: ApprovalQuestion): ApprovalAnswer {
    this.#answers.set(answer, null)
    this.#questions.set(answer, question)
    return answer
  }

  /** The answer as it is by now; of no call any more from here on. */
  claim(answer: ApprovalAnswer): ApprovalAnswer {
    const no = this.#answers.get(answer) ?? null
    this.#answers.delete(answer)
    this.#questions.delete(answer)
    this.#watchers.delete(answer)
    return no ?? answer
  }

  /** Tells once where the yes is taken back before it is claimed. */
  watch(answer: ApprovalAnswer, withdrawn: () => void): void {
    if (this.#answers.get(answer) === null) this.#watchers.set(answer, withdrawn)
    else withdrawn()
  }

  /** True while a call goes by that approval and has no permit yet. */
  has(approval: string): boolean {
    return this.#by(approval).length > 0
  }

  /** Makes it a no for every such call; false where there is none. */
  withdraw(approval: string, no: ApprovalAnswer): boolean {
    const given = this.#by(approval)
    for (const answer of given) this.#take(answer, no)
    return given.length > 0
  }

  /** Makes each yes a no whose question `which` says yes to. */
  void(which: (question: ApprovalQuestion) => boolean, no: ApprovalAnswer): void {
    for (const [answer, question] of this.#questions) if (which(question)) this.#take(answer, no)
  }

  #take(answer: ApprovalAnswer, no: ApprovalAnswer): void {
    if (this.#answers.get(answer) !== null) return // the first no stands
    this.#answers.set(answer, no)
    this.#watchers.get(answer)?.()
    this.#watchers.delete(answer)
  }

  /** An operator took these approvals back, which stood: what calls have begun by them may not go on. */
  revoke(approvals: readonly string[]): void {
    for (const one of approvals) this.#revoked.add(one)
    for (const one of this.#revoked) if (this.#revoked.size > mostRevoked) this.#revoked.delete(one)
  }

  isRevoked(approval: string): boolean {
    return this.#revoked.has(approval)
  }

  #by(approval: string): readonly ApprovalAnswer[] {
    return [...this.#answers.keys()].filter((answer) => answer.granted && answer.approval === approval)
  }
}
