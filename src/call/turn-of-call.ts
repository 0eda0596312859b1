// What a call that waits for its turn at a server stands on: a decision, or a yes.
import type { Proposal, Turn, Waiting } from '../schema/governor.ts'
import { isStill } from './decide.ts'
import type { Decided } from './passed.ts'
import type { ApprovalAnswer, GovernPorts } from './ports.ts'
import { isAsItWas } from './trust.ts'

/** Whether what was allowed would be allowed by what holds now, as the check at the boundary asks, too. */
export function isStillSo(
  { policyVersion, trust, proposed, request }: Decided,
  { server, instance, kind, subject }: Proposal,
  ports: Pick<GovernPorts, 'registry' | 'policyVersion' | 'decide'>,
): boolean {
  const now = ports.registry.standing(server.name, instance, kind, subject)
  const present = ports.registry.trust(server.name, subject)
  return (
    ports.policyVersion(server.name) === policyVersion &&
    (isAsItWas(trust, present) ||
      (trust.epoch === present.epoch && isStill(ports.decide(request, present).action, null))) &&
    now.state === 'accepted' &&
    now.identity === proposed.standing.identity
  )
}

/** While a person is asked the call has no turn: others need not wait for that. */
export const askingOf = (waiting: Waiting, endTurn: () => void): Waiting => ({
  signal: waiting.signal,
  asked() {
    endTurn()
    waiting.asked?.()
  },
})

/**
 * Waits for the turn of a call that a person said yes to; null where the yes was taken back meanwhile. Where the turn does not
 * come, nothing goes by that yes.
 */
export async function turnOnYes(
  proposal: Proposal,
  yes: ApprovalAnswer,
  waiting: Waiting,
  { turns, approver }: Pick<GovernPorts, 'turns' | 'approver'>,
): Promise<Turn | null> {
  const withdrawn = new AbortController()
  approver.watch(yes, () => withdrawn.abort())
  const { limitMs, queued } = waiting
  const signal = AbortSignal.any([waiting.signal, withdrawn.signal])
  const its = {
    signal,
    ...(limitMs === undefined ? {} : { limitMs }),
    ...(queued === undefined ? {} : { queued }),
  }
  try {
    return await new Promise((given, refused) => turns.wait(proposal, its, { given, refused }))
  } catch (error) {
    if (withdrawn.signal.aborted) return null
    approver.claim(yes)
    throw error
  }
}
