// Policy in the shape that the relay asks for.
import type { Decision, Gate, GovernedRequest } from '../schema/gate.ts'
import type { Rule } from '../schema/settings.ts'
import { decide, hides, isHidden, readsArguments } from './decide.ts'
import { route } from './methods.ts'
import { compileRule } from './rule.ts'

/** Decisions that are remembered for one server before all are forgotten; a host chooses the names */
const maxRemembered = 1000

/** The gate that a set of rules makes. A decision that no argument can change is made once. */
export function gateOf(rules: readonly Rule[]): Gate {
  const compiled = rules.map(compileRule)
  const remembered = new WeakMap<GovernedRequest['server'], Map<string, Decision>>()
  return {
    route,
    decide(request, hasEarned = false) {
      const known = remembered.get(request.server) ?? new Map<string, Decision>()
      const key = `${hasEarned ? '+' : '-'}${request.kind === 'tool' ? '' : '/'}${request.subject}`
      const before = known.get(key)
      if (before !== undefined) return before
      const decision = decide(request, compiled, hasEarned)
      if (!readsArguments(request, compiled)) {
        if (known.size >= maxRemembered) known.clear()
        remembered.set(request.server, known.set(key, decision))
      }
      return decision
    },
    lists: (server, tool) => !isHidden(server, tool, compiled),
    hides: (server, method) => hides(server, method, compiled),
  }
}
