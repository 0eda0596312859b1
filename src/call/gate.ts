// Policy in the shape that the relay asks for.
import type { Decision, Gate, GovernedRequest } from '../schema/gate.ts'
import type { Rule } from '../schema/settings.ts'
import { decide, hides, isHidden, readsArguments } from './decide.ts'
import { route } from './methods.ts'
import { compileRule } from './rule.ts'

/** Decisions of one kind that are remembered for one server before all are forgotten; a host chooses the names */
const maxRemembered = 250

/** The gate that a set of rules makes. A decision that no argument can change is made once. */
export function gateOf(rules: readonly Rule[]): Gate {
  const compiled = rules.map(compileRule)
  const remembered = new WeakMap<GovernedRequest['server'], readonly Map<string, Decision>[]>()
  return {
    route,
    decide(request, hasEarned = false) {
      let ofServer = remembered.get(request.server)
      if (ofServer === undefined) {
        ofServer = Array.from({ length: 4 }, () => new Map())
        remembered.set(request.server, ofServer)
      }
      const known =
        ofServer[(hasEarned ? 2 : 0) + (request.kind === 'tool' ? 1 : 0)] ?? new Map<string, Decision>()
      const { subject } = request
      const before = known.get(subject)
      if (before !== undefined) return before
      const decision = decide(request, compiled, hasEarned)
      if (!readsArguments(request, compiled)) {
        if (known.size >= maxRemembered) known.clear()
        known.set(subject, decision)
      }
      return decision
    },
    lists: (server, tool) => !isHidden(server, tool, compiled),
    hides: (server, method) => hides(server, method, compiled),
  }
}
