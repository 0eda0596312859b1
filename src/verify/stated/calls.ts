// `cannot call TOOL` and `must ask TOOL`, decided for a server by the policy that decides its calls.
import { possibleDecisions } from '../../call/possible.ts'
import { uncontained } from '../../config/containment.ts'
import { placeOfOrigin, placeOfServer } from '../../config/origin.ts'
import { isExact, matchesName } from '../../lib/glob.ts'
import { own } from '../../lib/own.ts'
import type { Assertion } from '../../schema/assertion.ts'
import type { Decision } from '../../schema/gate.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../../schema/settings.ts'
import type { AssertionResult, Verdict } from '../result.ts'

/** A server whose calls are decided. */
export interface CallScene {
  readonly settings: Settings
  readonly server: ServerSettings
  readonly profile: ProfileSettings
  /** All tools that it lists, by name; null where it could not be asked */
  readonly listed: ReadonlyMap<string, unknown> | null
}

type Judged = Pick<AssertionResult, 'verdict' | 'observed' | 'evidence'>

/** What policy says to one tool: every decision that some arguments, with or without trust of its own, would meet. */
interface Ruled {
  readonly tool: string
  readonly decisions: readonly Decision[]
}

/**
 * Judges by every tool that the server lists or its declaration names. What trust a tool has on this machine counts for
 * nothing: it must hold before the tool has earned any and after.
 *
 * - `cannot call` holds where every call of every matching tool is denied: to be asked is not to be denied
 * - `must ask` holds where some call is asked for and none passes unasked: where all are denied nobody is asked
 * - where nothing matches, a glob has been tried on nothing and is an error; so is a name unless policy denies it by itself
 */
export const judgeCall = async (
  { about, tool: glob }: Extract<Assertion, { about: 'call' | 'ask' }>,
  scene: CallScene,
): Promise<Judged> => {
  const { listed, server } = scene
  if (listed === null)
    return error(`the server could not be asked for its tools, so nobody knows which ${glob} matches`)
  const known = new Set([...listed.keys(), ...Object.keys(server.declaration ?? {})])
  const matching = [...known].filter((tool) => matchesName(glob, tool)).toSorted()
  const ruled = (matching.length === 0 && isExact(glob) ? [glob] : matching).map((tool): Ruled => {
    return { tool, decisions: decisionsFor(tool, scene) }
  })
  const evidence = await Promise.all(
    ruled.flatMap(({ tool, decisions }) => decisions.map((decision) => told(tool, decision, scene))),
  )
  if (ruled.length === 0)
    return { ...error(`no tool that the server lists matches ${glob}`), evidence: [lookedAt(known)] }
  const judge = about === 'call' ? judgeDenied : judgeAsked
  const results = ruled.map(({ tool, decisions }) => ({ tool, ...judge(decisions) }))
  const bad = results.find(({ verdict }) => verdict !== 'pass')
  if (matching.length === 0 && (about === 'ask' || bad !== undefined))
    return { ...error(`the server lists no tool ${glob}`), evidence: [...evidence, lookedAt(known)] }
  return {
    verdict: bad?.verdict ?? 'pass',
    observed:
      bad === undefined
        ? `${about === 'call' ? 'denied' : 'asked'}: ${ruled.map(({ tool }) => tool).join(', ')}`
        : `${bad.tool}: ${bad.observed}`,
    evidence,
  }
}

const lookedAt = (tools: ReadonlySet<string>): string =>
  `${tools.size} tools are listed or declared: ${[...tools].toSorted().join(', ') || 'none'}`

const error = (observed: string): Judged => ({ verdict: 'error', observed, evidence: [] })

type Finding = { readonly verdict: Verdict; readonly observed: string }

const judgeDenied = (decisions: readonly Decision[]): Finding => {
  const open = decisions.find(({ action }) => action !== 'deny')
  return open === undefined
    ? { verdict: 'pass', observed: 'denied' }
    : {
        verdict: 'fail',
        observed: `${open.action === 'ask' ? 'a person may allow it' : 'allowed'}: ${open.reason}`,
      }
}

const judgeAsked = (decisions: readonly Decision[]): Finding => {
  const open = decisions.find(({ action }) => action === 'allow')
  if (open !== undefined) return { verdict: 'fail', observed: `allowed unasked: ${open.reason}` }
  return decisions.some(({ action }) => action === 'ask')
    ? { verdict: 'pass', observed: 'asked' }
    : { verdict: 'fail', observed: `denied, so nobody is asked: ${decisions[0]?.reason ?? ''}` }
}

/** What the declaration keeps from ever being accepted or admitted comes before every rule. */
const decisionsFor = (tool: string, { settings, server, profile }: CallScene): readonly Decision[] => {
  const refused = refusedByDeclaration(tool, server, profile)
  if (refused !== null) return [refused]
  const found = [false, true].flatMap((hasEarned) =>
    possibleDecisions({ server, kind: 'tool', subject: tool }, settings.rules, hasEarned),
  )
  return [...new Map(found.map((decision) => [`${decision.action} ${decision.reason}`, decision])).values()]
}

const refusedByDeclaration = (
  tool: string,
  server: ServerSettings,
  profile: ProfileSettings,
): Decision | null => {
  if (server.declaration === null) return null
  const declared = own(server.declaration, tool)
  const denied = (reason: string): Decision => ({
    action: 'deny',
    rule: declarationOrigin,
    reason,
    code: 'ERR_POLICY_DENIED',
  })
  if (declared === undefined) return denied(`the declaration of ${server.name} does not name it`)
  const why = uncontained(server, profile, declared.sideEffects, declared.resourceScopes)
  return why === null ? null : denied(why)
}

const declarationOrigin = 'declaration'

const told = async (tool: string, { action, rule, reason }: Decision, scene: CallScene): Promise<string> => {
  const { settings, server } = scene
  const place =
    rule === null || rule === declarationOrigin
      ? await placeOfServer(server.name, settings, [rule ?? 'trust'])
      : await placeOfOrigin(rule, settings)
  return `${tool}: ${action}, ${reason}${place === null ? '' : ` (${place.path}:${place.line})`}`
}
