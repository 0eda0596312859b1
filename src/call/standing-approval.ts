// A yes to more than one call: what it covers.
import type { ApprovalAnswer } from './ports.ts'

/** An approval that outlives its call. */
export interface StandingApproval {
  readonly id: string
  /** This session's equal calls, or everybody's of that principal */
  readonly scope: 'session' | 'policy'
  readonly identity: string
  readonly argumentsDigest: string
  /** Of all that the server reads */
  readonly repeatDigest: string
  readonly principal: string
  readonly session: string
  /** What decided that it was to be asked; under another policy it is good for nothing */
  readonly policyVersion: string
  readonly trustEpoch: number
  readonly by: string
  /** Milliseconds on the approvals' own clock */
  readonly expiresAt: number
}

/** What of a question an approval is for. */
export type Covered = Omit<StandingApproval, 'id' | 'scope' | 'by' | 'expiresAt'>

/** Whether it is a yes to such a question, too, as long as it stands. */
export function covers(approval: StandingApproval, question: Covered): boolean {
  // Which is of the arguments, too, and not of the token that `params` of other methods than tools/call have among them.
  if (approval.repeatDigest !== question.repeatDigest || approval.identity !== question.identity) return false
  if (approval.principal !== question.principal || approval.trustEpoch !== question.trustEpoch) return false
  if (approval.policyVersion !== question.policyVersion) return false
  return approval.scope !== 'session' || approval.session === question.session
}

/** The answer that it gives. */
export const yesBy = ({ id, scope, by }: StandingApproval): ApprovalAnswer => ({
  granted: true,
  approval: id,
  scope,
  by,
  repeats: true,
})
