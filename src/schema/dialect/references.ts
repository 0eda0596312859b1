// References: to a schema by its name or its place, or to whichever schema of that name the way here came by first.
import type { Keyword, Said } from './keyword.ts'
import { beside, type Check, type Scope } from './turn.ts'
import { Unusable } from './unusable.ts'

/** `$recursiveRef` is `$dynamicRef` to the anchor without a name. */
export const references: Readonly<Record<string, Keyword>> = {
  $ref: (said) => {
    const { check } = targetOf(said)
    return (value, turn) => beside(check, value, turn)
  },
  $dynamicRef: (said) => {
    const { check, anchor } = targetOf(said)
    return anchor === null ? (value, turn) => beside(check, value, turn) : dynamic(said, anchor, check)
  },
  $recursiveRef: (said) => {
    if (said.said !== '#') throw new Unusable(said.place, said.said, '"#"')
    const { check } = targetOf(said)
    return said.resource.dynamic.has('')
      ? dynamic(said, '', check)
      : (value, turn) => beside(check, value, turn)
  },
}

function targetOf({ said, place, resource, compiler }: Said): { check: Check; anchor: string | null } {
  if (typeof said !== 'string') throw new Unusable(place, said, 'a reference')
  const { schema, resource: to, anchor } = compiler.resources.find(said, resource, place)
  return { check: compiler.check(schema, to, said), anchor }
}

/** Where no way here came by the name, it is `otherwise`. */
function dynamic({ compiler, place }: Said, anchor: string, otherwise: Check): Check {
  const checks = compiler.dynamic(anchor, place)
  return (value, turn) => {
    let check = otherwise
    for (let scope: Scope | null = turn.scope; scope !== null; scope = scope.outer)
      check = checks.get(scope.resource) ?? check // the outermost is the last
    return beside(check, value, turn)
  }
}
