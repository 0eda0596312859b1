// Decides one request by the server's lists, its trust and the rules. Pure: same question, same answer.
import { matchesName } from '../lib/glob.ts'
import type { Decision, GovernedRequest, Hides } from '../schema/gate.ts'
import type { Action } from '../schema/settings.ts'
import { type CompiledRule, type Condition, isUnconditionalDeny, names } from './rule.ts'
import { ambiguousKey, holds, mostSteps, Reading } from './where.ts'

const toolName = /^[A-Za-z0-9_.-]{1,128}$/

/**
 * Returns what policy says to a request, in this order:
 * 1. a tool whose name could not be part of an identity is denied
 * 2. the server's lists: `tools.deny` denies; `tools.allow`, where it names anything, denies the rest; a `sandboxed`
 *    server exposes the tools of `tools.allow` and nothing else, so none of its other governed methods either
 * 3. arguments that two readers could read differently, where a rule looks, are denied
 * 4. any matching deny wins
 * 5. otherwise the first matching rule; none is `ask`
 * 6. for an `untrusted` server, allow becomes ask unless the rule names the server and the tool (or method) exactly, and no
 *    host launched it under that name, or the tool has earned trust of its own
 *
 * A `where` that cannot be evaluated matches for deny and for ask, never for allow.
 */
export function decide(
  request: GovernedRequest,
  rules: readonly CompiledRule[],
  hasEarned = false,
): Decision {
  const refusal = refusedByLists(request)
  if (refusal !== null) return denial(refusal.by, refusal.reason)

  const applicable = rules.filter((rule) => names(rule, request))
  const reading = new Reading(applicable)
  for (const rule of applicable) {
    const key =
      rule.conditions.length === 0 ? null : ambiguousKey(rule.conditions, request.arguments, reading)
    if (key !== null) return ambiguity(rule, key)
  }

  const deny = applicable.find((rule) => rule.action === 'deny' && applies(rule, request, reading))
  if (deny !== undefined) return denial(deny.origin, `${deny.origin} denies ${deny.permission}`)

  const first = applicable.find((rule) => rule.action !== 'deny' && applies(rule, request, reading))
  if (first === undefined) return ask(null, `no rule matches ${permissionOf(request)}, which means ask`)
  if (first.action !== 'allow') return ask(first.origin, `${first.origin} asks for ${first.permission}`)
  if (request.server.trust === 'untrusted' && !hasEarned) {
    const why = whyNotEnough(request, first)
    if (why !== null) return ask(first.origin, `${first.origin} allows it ${why}`)
  }
  return {
    action: 'allow',
    rule: first.origin,
    reason: `${first.origin} allows ${first.permission}`,
    code: null,
  }
}

/** An exact rule is the word of somebody who knew the server; of one that a host launched, the host chose the name. */
function whyNotEnough(request: GovernedRequest, rule: CompiledRule): string | null {
  if (request.server.scope === 'dynamic')
    return 'by its name, and the server is untrusted and a host launched it: the tool earns trust first'
  if (rule.isExact) return null
  return `by a pattern, and the server is untrusted: a rule for exactly ${permissionOf(request)} would stand`
}

/** Whether a decision made again lets a call pass: what was allowed must be allowed, what was approved must not be denied. */
export const isStill = (action: Action, approval: string | null): boolean =>
  action === 'allow' || (action === 'ask' && approval !== null)

/** True when no call of the tool could be allowed, whatever its arguments; such a tool is not shown. */
export function isHidden(
  server: GovernedRequest['server'],
  tool: string,
  rules: readonly CompiledRule[],
): boolean {
  const request: GovernedRequest = { server, kind: 'tool', subject: tool, arguments: null }
  if (refusedByLists(request) !== null) return true
  return rules.some((rule) => isUnconditionalDeny(rule) && names(rule, request))
}

/** See `Gate.hides`. A deny that looks at parameters which are not known could leave the request a way, and so does one that takes too long to tell. */
export function hides(
  server: GovernedRequest['server'],
  method: string,
  rules: readonly CompiledRule[],
): Hides | null {
  const request: GovernedRequest = { server, kind: 'method', subject: method, arguments: null }
  if (refusedByLists(request) !== null) return () => true
  const denials = rules.filter((rule) => rule.action === 'deny' && names(rule, request))
  if (denials.length === 0) return null
  if (denials.some(isUnconditionalDeny)) return () => true
  const reading = new Reading(denials, mostSteps.ofList)
  return (known) => {
    if (known === null) return true
    if (reading.effort.left < 0) return false
    const isDenied = denials.some(({ conditions }) =>
      conditions.every((one) => isCertain(one, known, reading)),
    )
    return isDenied && reading.effort.left >= 0
  }
}

function isCertain(condition: Condition, known: Readonly<Record<string, string>>, reading: Reading): boolean {
  const [segment, ...deeper] = condition.segments
  if (segment === undefined || deeper.length > 0 || !Object.hasOwn(known, segment.key)) return false
  return holds([condition], known, reading) !== 'no'
}

/** True when another value of the arguments could lead to another decision. */
export const readsArguments = (request: GovernedRequest, rules: readonly CompiledRule[]): boolean =>
  rules.some((rule) => rule.conditions.length > 0 && names(rule, request))

/** Which entry of the server's refuses it, and why, or null. */
function refusedByLists({ server, kind, subject }: GovernedRequest): Refusal | null {
  const { name, file, trust, tools } = server
  const refusal = (at: string, why: (by: string) => string): Refusal => {
    const by = `${file} servers.${name}.${at}`
    return { by, reason: why(by) }
  }
  const bySandboxed = (by: string): string =>
    `${by}: ${name} is sandboxed and exposes only the tools of tools.allow`
  if (kind === 'method') return trust === 'sandboxed' ? refusal('trust', bySandboxed) : null
  if (!toolName.test(subject))
    return { by: null, reason: 'a tool name is 1 to 128 letters, digits, "_", "." or "-"' }
  const index = tools.deny.findIndex((glob) => matchesName(glob, subject))
  if (index >= 0) return refusal(`tools.deny[${index}]`, (by) => `${by} denies ${tools.deny[index]}`)
  if (tools.allow.length === 0) return trust === 'sandboxed' ? refusal('trust', bySandboxed) : null
  if (tools.allow.some((glob) => matchesName(glob, subject))) return null
  return refusal('tools.allow', (by) => `${by} does not name it`)
}

interface Refusal {
  /** File and entry, or null where neither decides */
  readonly by: string | null
  readonly reason: string
}

/** A condition that cannot be told applies where it restricts, and not where it would allow. */
function applies({ action, conditions }: CompiledRule, request: GovernedRequest, reading: Reading): boolean {
  if (conditions.length === 0) return true
  const answer = holds(conditions, request.arguments, reading)
  return action === 'allow' ? answer === 'yes' : answer !== 'no'
}

const permissionOf = ({ server, subject }: GovernedRequest): string => `mcp:${server.name}:${subject}`

const denial = (rule: string | null, reason: string): Decision => ({
  action: 'deny',
  rule,
  reason,
  code: 'ERR_POLICY_DENIED',
})

const ask = (rule: string | null, reason: string): Decision => ({
  action: 'ask',
  rule,
  reason,
  code: 'ERR_APPROVAL_UNAVAILABLE',
})

const ambiguity = (rule: CompiledRule, key: string): Decision => ({
  action: 'deny',
  rule: rule.origin,
  reason: `the arguments have the key ${JSON.stringify(key)} where ${rule.origin} looks, which readers take differently`,
  code: 'ERR_MESSAGE_AMBIGUOUS',
})
