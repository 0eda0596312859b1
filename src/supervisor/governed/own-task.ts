// A task lives in the process that began it: a call that has a process of its own can come to none.
import { SallyportError } from '../../errors.ts'
import type { Outcome } from '../../schema/governor.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Held } from '../lanes/wire.ts'
import { taskBegun } from '../lanes/tasks.ts'

/** Why a call is not made that asks for a task, or null. In the later era none asks: the server begins one where it likes. */
export const taskRefused = (
  { name, instance }: Pick<ServerSettings, 'name' | 'instance'>,
  { asks: [ask], asksTask }: Pick<Held, 'asks' | 'asksTask'>,
  isLegacy: boolean,
): SallyportError | null =>
  isLegacy && instance === 'call' && asksTask && ask?.kind === 'tool'
    ? refusal(
        `the task of a call of ${name} would end with the process, which is that call's own; call without task`,
      )
    : null

/** Why an answer does not go to the host that begins a task, with how its call has ended; null where it begins none. */
export function taskLost(
  server: string,
  result: string,
  isLegacy: boolean,
): { readonly kind: Outcome['kind']; readonly refusal: SallyportError } | null {
  // In the older era only who asks for a task has one, and who asks for one here is refused.
  if (isLegacy || taskBegun(result, false, false) === null) return null
  return {
    kind: 'lost',
    refusal: refusal(`${server} began a task, which has ended with its process, this call's own`),
  }
}

const refusal = (why: string): SallyportError =>
  new SallyportError('ERR_METHOD_REFUSED', `${why}, or have the operator set instance: session`)
