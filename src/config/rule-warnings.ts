// What a rule says that whoever wrote it may not have meant: it holds, and is told of.
import type { Rule } from '../schema/settings.ts'

/** One line for each rule that looks at one element of a list alone. */
export function warningsOfRules(rules: readonly Rule[]): readonly string[] {
  return rules.flatMap(({ origin, where }) =>
    Object.keys(where).flatMap((pointer) => ofElement(origin, pointer)),
  )
}

/** An object may have a number for a key, too. */
function ofElement(origin: string, pointer: string): readonly string[] {
  const every = pointer.replaceAll(/(?<=\/)(?:0|[1-9]\d*)(?=\/|$)/g, '*')
  if (every === pointer) return []
  return [
    `${origin} looks at ${JSON.stringify(pointer)}, which is one element where it leads to a list, and not at the others; write ${JSON.stringify(every)} for every one`,
  ]
}
