// Policy in the shape that the relay asks for.
import type { Gate } from '../schema/gate.ts'
import type { Rule } from '../schema/settings.ts'
import { concerns, decide, isHidden, isUnconditionalDeny } from './decide.ts'
import { route } from './methods.ts'

/** The gate that a set of rules makes; rules are not copied, so a frozen array is expected. */
export function gateOf(rules: readonly Rule[]): Gate {
  return {
    route,
    decide: (request) => decide(request, rules),
    lists: (server, tool) => !isHidden(server, tool, rules),
    listsAll: (server) =>
      server.trust !== 'sandboxed' &&
      server.tools.allow.length === 0 &&
      server.tools.deny.length === 0 &&
      !rules.some((rule) => isUnconditionalDeny(rule) && concerns(rule, server.name)),
  }
}
