// What is left of a value when all that a schema says of it has looked: members and items that nothing spoke of.
import { member, noSuch } from './applicators.ts'
import type { Keyword } from './keyword.ts'
import { isObject } from './dialects.ts'
import { item } from './items.ts'

/** Both are last of all keywords. */
export const unevaluated: Readonly<Record<string, Keyword>> = {
  unevaluatedItems: (said) => {
    said.compiler.looksBack()
    const check = said.below(said.said)
    return (value, turn) => {
      if (!Array.isArray(value)) return null
      for (const [place, one] of value.entries()) {
        const problem = turn.seen?.places.has(place) ? null : item(check, one, place, turn, said)
        if (problem !== null) return problem
      }
      return null
    }
  },
  unevaluatedProperties: (said) => {
    said.compiler.looksBack()
    const below = said.below(said.said)
    const check = said.said === false ? noSuch : below
    return (value, turn) => {
      if (!isObject(value)) return null
      for (const [name, one] of Object.entries(value)) {
        const problem = turn.seen?.names.has(name) ? null : member(check, one, name, turn, said)
        if (problem !== null) return problem
      }
      return null
    }
  },
}
