// What a profile's file still says where parts of it are wrong: so that lint can say the rest in the same breath.
import type { Problem, Step } from '../schema/problem.ts'
import type { Profile } from '../schema/types.gen.ts'
import { validate } from '../schema/validate.ts'

/** A reason where there is none: what it would have said changes nothing else. */
const placeholder = 'not given'

/** More rounds would be a profile of which nothing is left. */
const rounds = 8

/**
 * Returns the value without what is wrong in it, and the profile that it is then; null where nothing of it can be read.
 *
 * A reason or override that is missing is made up; unknown keys are taken away, and of what is wrong in a list the whole
 * list, so that places in others stay what they are. A key that is taken away is the parent's.
 */
export function mended(value: unknown): { readonly value: unknown; readonly profile: Profile } | null {
  const mending: unknown = structuredClone(value)
  for (let round = 0; round < rounds; round++) {
    const validated = validate('profile', mending)
    if (validated.ok) return { value: mending, profile: validated.value }
    for (const problem of validated.problems) if (!mend(mending, problem)) return null
  }
  return null
}

function mend(root: unknown, { at, kind }: Problem): boolean {
  const key = at.at(-1)
  const holder = holderOf(root, at)
  if (key === undefined || holder === null) return true // what another problem took away already
  if (key === 'reason' || key === 'override') {
    holder[key] = placeholder
    return true
  }
  if (kind === 'unknown-key' || (kind === 'value' && typeof key === 'string')) {
    delete holder[key]
    return true
  }
  const list = at.findIndex((step) => typeof step === 'number')
  const place = at.slice(0, list < 0 ? -1 : list)
  const outer = holderOf(root, place)
  const name = place.at(-1)
  if (outer === null || name === undefined) return false
  delete outer[name]
  return true
}

function holderOf(root: unknown, at: readonly Step[]): Record<Step, unknown> | null {
  let node = root
  for (const step of at.slice(0, -1))
    node = typeof node === 'object' && node !== null ? (node as Record<Step, unknown>)[step] : null
  return typeof node === 'object' && node !== null ? (node as Record<Step, unknown>) : null
}
