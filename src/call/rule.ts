// A rule in the form in which it is asked thousands of times a second.
import { isExact, matchesName } from '../lib/glob.ts'
import { foldKey } from '../lib/key-folding.ts'
import type { GovernedRequest } from '../schema/gate.ts'
import type { Action, Rule } from '../schema/settings.ts'

/** One condition on the arguments. */
export interface Condition {
  /** The JSON pointer's segments, with the fold of each */
  readonly segments: readonly { readonly key: string; readonly fold: string }[]
  readonly glob: string
}

/** A rule taken apart. */
export interface CompiledRule {
  readonly permission: string
  readonly action: Action
  readonly origin: string
  readonly conditions: readonly Condition[]
  /** True when it names one server and one tool or method, not a pattern of them */
  readonly isExact: boolean
  readonly server: string
  readonly subject: string
}

/** Takes a rule apart. A permission that is not `mcp:<server>:<subject>` matches nothing. */
export function compileRule({ permission, action, where, origin }: Rule): CompiledRule {
  const [scheme, first = '', ...rest] = permission.split(':')
  const [server, subject] = scheme === 'mcp' ? [first, rest.join(':')] : ['', '']
  return {
    permission,
    action,
    origin,
    server,
    subject,
    isExact: isExact(server) && isExact(subject),
    conditions: Object.entries(where).map(([pointer, glob]) => ({ segments: parsePointer(pointer), glob })),
  }
}

/** True when the rule is about that server and that tool or method. */
export const names = (rule: CompiledRule, request: GovernedRequest): boolean =>
  matchesName(rule.server, request.server.name) && matchesName(rule.subject, request.subject)

/** True when the rule denies whatever the arguments are. */
export const isUnconditionalDeny = (rule: CompiledRule): boolean =>
  rule.action === 'deny' && rule.conditions.length === 0

/** Splits a JSON pointer (RFC 6901) into its segments. */
function parsePointer(pointer: string): Condition['segments'] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((key) => ({ key, fold: foldKey(key, Infinity) }))
}
