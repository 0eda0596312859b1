// What settings allow, on one daemon's journal: the policy of all, and what a project's file leaves of it for one session.
import { hash } from 'node:crypto'
import { gateOf } from '../call/gate.ts'
import { narrowByProject } from '../config/project.ts'
import type { Rule, Settings } from '../schema/settings.ts'
import type { Policy, Ports } from '../supervisor/ports.ts'
import type { Governance } from './governance.ts'

/** Digest of the rules that decide. */
export const policyVersionOf = (rules: readonly Rule[]): string =>
  hash('sha256', JSON.stringify(rules)).slice(0, 16)

/** The policy that settings make, on one daemon's journal. */
export const policyUnder =
  (governance: Governance) =>
  (settings: Settings): Policy => {
    const gate = gateOf(settings.rules)
    return { settings, gate, governor: governance.governor({ rules: settings.rules, gate }) }
  }

/** What a project's file leaves of the settings, for one session. */
export function narrowing(
  settings: Settings,
  daemonUid: number,
  policy: ReturnType<typeof policyUnder>,
): Ports['narrow'] {
  return async (project, { principal }) =>
    policy(await narrowByProject(settings, project, [daemonUid, principal.attributes.uid]))
}
