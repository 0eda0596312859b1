// What a run ends with: which faults it had, what is broken, and the exit status.
import { type Invariant, invariants } from './account.ts'
import type { Coming } from './coming.ts'
import { againWith, type Same, statusUnproven, unprovenAs } from './unproven.ts'

/** The last lines of a run and its exit status. One in which nothing befell anybody has proven nothing, whatever held. */
export function verdict(
  broken: readonly { readonly invariant: Invariant }[],
  coming: Coming,
  told: Same,
): { readonly lines: readonly string[]; readonly status: number } {
  const names = [...new Set(broken.map(({ invariant }) => invariant))]
  if (names.length > 0) {
    const which = names.map((name) => `BROKEN ${name}: ${invariants[name]}`)
    const count = `${names.length} ${names.length === 1 ? 'invariant' : 'invariants'} broken`
    return { lines: [coming.inWords(), ...which, `${count}; ${againWith(told)}`], status: 1 }
  }
  if (coming.isNone)
    return {
      lines: [coming.inWords(), unprovenAs('no fault befell anybody', told)],
      status: statusUnproven,
    }
  const held = `all ${Object.keys(invariants).length} invariants held; seed ${told.seed}`
  return { lines: [coming.inWords(), held], status: 0 }
}
