// An operator who watches for questions until disposed, and may answer them.
import type { Client } from '../../src/client/client.ts'
import type { PendingApproval } from '../../src/rpc/approvals.ts'
import { eventually } from './eventually.ts'
import { type Fate, following, isGone } from './following.ts'

type Answer = (question: PendingApproval) => unknown

/** Is listened for when this resolves, and no more when it is disposed, where a failure of `answer` is thrown. */
export async function watching(client: Client, answer: Answer = () => undefined, fate: Fate = {}) {
  const asked: PendingApproval[] = []
  const watch = await following(
    (waiting) => client.approvals(waiting),
    ({ method, params }) => (method === 'approvals/asked' ? (asked.push(params), answer(params)) : null),
    fate,
  )
  /** How many listen, or 0 where nobody is there to say so and nobody need be */
  const listeners = (): Promise<number> =>
    client.call('approvals/list', {}).then(
      (said) => said.listeners,
      (error: unknown) => {
        if (fate.mayEnd === true && isGone(error)) return 0
        throw error
      },
    )
  return {
    asked,
    /** The question of that number, when it is asked */
    next: async (nth = 1): Promise<PendingApproval> => eventually(() => asked[nth - 1]),
    async [Symbol.asyncDispose]() {
      let before = 0
      try {
        before = await listeners()
      } finally {
        await watch[Symbol.asyncDispose]()
      }
      if (before > 0) await eventually(async () => (await listeners()) < before)
    },
  }
}

/** Says yes to whatever is asked, as far as that. */
export const yes =
  (client: Client, scope: 'once' | 'session' | 'policy' = 'once'): Answer =>
  ({ id }) =>
    client.call('approvals/approve', { id, scope })
