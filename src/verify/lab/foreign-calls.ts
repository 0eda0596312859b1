// Which tables of calls this machine's kernel has beside its own, as it answers outside of any sandbox.
import { stops } from '../attempt.ts'
import type { Lab } from './lab.ts'
import { tryOutside } from './try.ts'

export interface ForeignCalls {
  readonly i386: boolean
  readonly x32: boolean
}

/** One that something keeps from answering is taken to be there: that it is not is said by the kernel alone. */
export const foreignCallsOf = async (lab: Lab): Promise<ForeignCalls> => {
  const asked = ['foreign-architecture', 'foreign-numbers'].map((name) => stops([name], []))
  const { answers } = await tryOutside(lab, asked)
  const [i386, x32] = asked.map((_, index) => answers[index]?.outcome !== 'ENOSYS')
  return { i386: i386 === true, x32: x32 === true }
}
