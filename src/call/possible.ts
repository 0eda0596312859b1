// What policy could say to a call whose arguments nobody knows yet: every answer that some arguments would get.
import type { Decision, GovernedRequest } from '../schema/gate.ts'
import type { Rule } from '../schema/settings.ts'
import { decide } from './decide.ts'
import { compileRule, names } from './rule.ts'

/**
 * Returns the decisions that calls of one tool could meet, each by the rule that would decide it. A rule with a `where`
 * may apply or not; one that denies without any leaves nothing else possible. Pure.
 */
export function possibleDecisions(
  request: Omit<GovernedRequest, 'arguments'>,
  rules: readonly Rule[],
  hasEarned: boolean,
): readonly Decision[] {
  const asked: GovernedRequest = { ...request, arguments: {} }
  const by = (those: readonly Rule[]): Decision => decide(asked, those.map(compileRule), hasEarned)
  const naming = rules.filter((rule) => names(compileRule(rule), asked))
  const bare = naming.filter(isBare)
  const always = by(bare.filter(({ action }) => action === 'deny'))
  if (always.action === 'deny') return [always]
  const denials = naming.filter(({ action }) => action === 'deny').map((rule) => by([unconditional(rule)]))
  const others = naming.filter(({ action }) => action !== 'deny')
  // Whichever comes first of those that apply decides, and behind one without a `where` none is asked.
  const last = others.findIndex(isBare)
  const first = (last < 0 ? others : others.slice(0, last + 1)).map((rule) => by([unconditional(rule)]))
  return [...denials, ...first, ...(last < 0 ? [by([])] : [])]
}

const isBare = ({ where }: Rule): boolean => Object.keys(where).length === 0

const unconditional = (rule: Rule): Rule => ({ ...rule, where: {} })
