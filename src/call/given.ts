// Each yes on its way to a permit: until that is issued, an operator may take it back.
import type { ApprovalAnswer } from './ports.ts'

export class Given {
  /** With the no that took it back, or null */
  readonly #answers = new Map<ApprovalAnswer, ApprovalAnswer | null>()

  /** Follows a yes until it is claimed; returns it. */
  add(answer: ApprovalAnswer): ApprovalAnswer {
    this.#answers.set(answer, null)
    return answer
  }

  /** The answer as it is by now; of no call any more from here on. */
  claim(answer: ApprovalAnswer): ApprovalAnswer {
    const no = this.#answers.get(answer) ?? null
    this.#answers.delete(answer)
    return no ?? answer
  }

  /** True while a call goes by that approval and has no permit yet. */
  has(approval: string): boolean {
    return this.#by(approval).length > 0
  }

  /** Makes it a no for every such call; false where there is none. */
  withdraw(approval: string, no: ApprovalAnswer): boolean {
    const given = this.#by(approval)
    for (const answer of given) this.#answers.set(answer, no)
    return given.length > 0
  }

  #by(approval: string): readonly ApprovalAnswer[] {
    return [...this.#answers.keys()].filter((answer) => answer.granted && answer.approval === approval)
  }
}
