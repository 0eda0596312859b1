// What a call would meet on its way, in the order in which it meets it, without making it.
import { digestOf } from '../../call/canonical.ts'
import { canonical, expectReadAlike, expectValid, invalid, type Said } from '../../call/expect.ts'
import type { Standing } from '../../call/ports.ts'
import type { StandingApproval } from '../../call/standing-approval.ts'
import { repeatDigest } from '../../call/repeat.ts'
import { isProvisional } from '../../call/trust.ts'
import { SallyportError } from '../../errors.ts'
import { governedMethods } from '../../schema/governed-methods.ts'
import { counted } from '../../lib/counted.ts'
import { members } from '../../lib/json-scan.ts'
import { meant } from '../../lib/nearest.ts'
import { latin1 } from '../../lib/one-way.ts'
import type { RawJson } from '../../lib/raw-json.ts'
import type { Decision } from '../../schema/gate.ts'
import type { Action, ServerSettings } from '../../schema/settings.ts'
import type { InstanceView, OperatorMethods } from '../../rpc/protocol.ts'
import type { ExplainedStep } from '../../rpc/governed.ts'
import { parseArguments } from '../../supervisor/control/call-tool.ts'
import { inModernDress } from '../../supervisor/message/modern-dress.ts'
import { ambiguousParams } from '../../supervisor/message/params.ts'
import type { Policy } from '../../supervisor/ports.ts'
import type { Governance } from '../governance/governance.ts'
import { policyVersionOf } from '../governance/policy.ts'
import { ungiven } from '../governance/ungiven.ts'
import { foreseen, type ForeseenPorts } from './foreseen.ts'

/** The call, its arguments as they are written: numbers, escapes and keys that come twice included. */
interface Asked {
  readonly tool: string
  readonly lineage: string | null
  readonly arguments: RawJson
  /** Why the server is down and not started by a call, or null */
  readonly down: string | null
  /** Why it is not known what the server lists by now, or null */
  readonly unlisted: string | null
  /** Whose call it would be, and what would serve it */
  readonly principal: string
  readonly own: InstanceView | undefined
}
type Explanation = OperatorMethods['policy/explain']['result']

export interface ExplainPorts extends ForeseenPorts {
  readonly policy: Policy
}

/** Explains one call; `server` is the one that it names. Starts nothing, records nothing. Throws for a method that no rule is asked about. */
export async function explain(
  ports: ExplainPorts,
  server: ServerSettings,
  { tool, arguments: given, lineage, down, unlisted, principal, own }: Asked,
): Promise<Explanation> {
  const { governance, policy } = ports
  const { ledger } = governance
  const kind = tool.includes('/') ? 'method' : 'tool'
  if (kind === 'method' && !governedMethods.includes(tool))
    throw new SallyportError(
      'ERR_TOOL_NOT_FOUND',
      tool === 'subscriptions/listen'
        ? `${tool} is decided thing by thing: as resources/subscribe of each resource that it names, and as tasks/get of each task`
        : `the method ${tool} is not governed${meant(tool, governedMethods)}`,
      { server: server.name, tool },
    )
  const read = readArguments(kind === 'method' ? tool : null, given)
  const value = read instanceof SallyportError ? {} : read.value
  const bytes = kind === 'tool' ? `{"name":${JSON.stringify(tool)},"arguments":${given.raw}}` : given.raw
  const request = { server, kind, subject: tool, arguments: value, bytes, principal } as const
  const trust = ledger.trust(server.name, tool)
  const standing = foreseen(ports, server, own, request)
  const decision = policy.gate.decide(request, isProvisional(trust))
  const hold = ledger.hold(server.name, tool, lineage)
  const judged =
    read instanceof SallyportError
      ? refuse('arguments', read.message)
      : await argumentsStep(governance, request, standing, decision)
  const stands =
    decision.action !== 'ask' || standing.state !== 'accepted' || judged.verdict === 'refuse'
      ? null
      : standingFor(
          governance,
          { ...request, lineage },
          {
            identity: standing.identity,
            argumentsDigest: digestOf(canonical(request)),
            principal,
            session: own?.id ?? '', // a control call's session is its instance
            policyVersion: policyVersionOf(policy.settings, server.name),
            trustEpoch: trust.epoch,
          },
        )
  const steps: ExplainedStep[] = [
    serverStep(governance, server, down),
    acceptanceStep(governance, server, standing, unlisted),
    judged,
    rulesStep(decision),
    trustStep(server, trust, {
      decided: decision.action,
      untried: policy.gate.decide(request, false).action,
      proven: policy.gate.decide(request, true).action,
    }),
    ...(decision.action === 'ask' ? [approvalStep(governance, stands)] : []),
    effectsStep(governance, server, standing),
    hold === null ? pass('hold', 'nothing holds it') : refuse('hold', `the hold ${hold} covers it`),
  ]
  const { action, rule, reason } = decision
  return {
    action,
    rule,
    reason,
    identity: standing.state === 'accepted' ? standing.identity : null,
    server_trust: server.trust,
    tier: trust.tier,
    outcome: steps.some(({ verdict }) => verdict === 'refuse')
      ? 'refused'
      : action === 'ask' && stands === null
        ? 'asked'
        : 'sent',
    steps,
  }
}

/** A control call is worded for the era of its server, which is known once that is up: either wording is held against what stands. */
function standingFor(
  { approvals }: Governance,
  { kind, bytes, lineage }: Pick<Said, 'kind' | 'bytes'> & Pick<Asked, 'lineage'>,
  question: Omit<Parameters<typeof approvals.covering>[0], 'repeatDigest'>,
): StandingApproval | null {
  const wordings = kind === 'tool' ? [bytes, inModernDress(bytes)] : [bytes]
  const found = wordings.map((params) =>
    approvals.covering({
      ...question,
      repeatDigest: repeatDigest({ bytes: params, evidence: params, lineage, id: null }),
    }),
  )
  return found.find((approval) => approval !== null) ?? null
}

function serverStep({ ledger }: Governance, server: ServerSettings, down: string | null): ExplainedStep {
  const { name, enabled, disabledReason, unenforceable } = server
  const halt = ledger.quarantined().find((one) => one.server === name)
  if (!enabled) return refuse('server', disabledReason ?? `server ${name} is disabled`)
  if (unenforceable.length > 0)
    return refuse('server', `this version cannot enforce ${unenforceable.join(', ')}`)
  if (halt !== undefined) return refuse('server', `${name} is quarantined (${halt.failure}): ${halt.reason}`)
  if (down !== null) return refuse('server', `${name} is down: ${down}`)
  return pass('server', `${name} ${server.version}, profile ${server.profile}, may run`)
}

/** What is accepted when it is first seen is not refused for not being accepted yet. */
function acceptanceStep(
  { ledger }: Governance,
  { name, acceptance }: ServerSettings,
  standing: Standing,
  unlisted: string | null,
): ExplainedStep {
  if (unlisted !== null) return refuse('acceptance', unlisted)
  if (standing.state === 'accepted') return pass('acceptance', `accepted as ${standing.identity}`)
  const isFirst = standing.state === 'unaccepted' && ledger.accepted(name) === null
  if (!isFirst || acceptance !== 'first-use') return refuse('acceptance', standing.reason)
  return pass(
    'acceptance',
    `nothing of ${name} was accepted yet; what it lists when it first runs is (acceptance: first-use)`,
  )
}

/** A method's are the params of its request, whose keys are judged, too. */
function readArguments(method: string | null, given: RawJson): { readonly value: unknown } | SallyportError {
  try {
    const value = parseArguments(given)
    const text = latin1(given.raw)
    const ambiguous = method === null ? null : ambiguousParams(method, members(text, 0, text.length))
    return ambiguous ?? { value }
  } catch (error) {
    return SallyportError.from(error)
  }
}

/** What steps 2 and 5 of a call expect of its arguments. */
async function argumentsStep(
  governance: Governance,
  said: Said,
  standing: Standing,
  { action }: Decision,
): Promise<ExplainedStep> {
  try {
    const text = canonical(said)
    if (standing.state === 'accepted')
      expectValid(await invalid(said, standing, text, governance.governors), said)
    if (action === 'ask') expectReadAlike(said)
  } catch (error) {
    return refuse('arguments', SallyportError.from(error).message)
  }
  if (said.kind === 'method') return pass('arguments', 'methods declare none')
  if (standing.state !== 'accepted')
    return pass('arguments', 'there is no accepted schema to hold them against')
  return pass('arguments', 'they are what the accepted schema says')
}

function effectsStep(governance: Governance, server: ServerSettings, standing: Standing): ExplainedStep {
  const declared = standing.state === 'accepted' ? standing.tool?.declaration : undefined
  const { sideEffects = [], resourceScopes = [] } = declared ?? {}
  const outside = governance.governors.uncontained(server.name, sideEffects, resourceScopes)
  if (outside !== null) return refuse('side effects', outside)
  const left = declared === undefined ? null : ungiven(server, [declared])
  const contained = 'the sandbox contains what the tool declares'
  return pass(
    'side effects',
    left === null ? contained : `${contained}; of what its entry gives that is without ${left}`,
  )
}

function rulesStep({ action, reason }: Decision): ExplainedStep {
  return {
    step: 'rules',
    verdict: action === 'allow' ? 'pass' : action === 'ask' ? 'ask' : 'refuse',
    detail: reason,
  }
}

/** What is decided, and what would be of a tool that has earned nothing, and of one that has. */
interface Decided {
  readonly decided: Action
  readonly untried: Action
  readonly proven: Action
}

function trustStep(
  server: ServerSettings,
  { tier, evidence, confidence }: ReturnType<Governance['ledger']['trust']>,
  actions: Decided,
): ExplainedStep {
  const earned = `${tier} (${counted(evidence, 'good call')}, confidence ${confidence})`
  const detail = `the server is ${server.trust}, ${whatDecides(server, actions)}; the tool has earned the tier ${earned}`
  const isAsked = actions.decided === 'ask' && actions.proven === 'allow' // with more trust it would not be
  return { step: 'trust', verdict: isAsked ? 'ask' : 'pass', detail }
}

function whatDecides({ trust }: ServerSettings, { untried, proven }: Decided): string {
  if (trust === 'trusted') return 'so the rules alone decide'
  if (trust === 'sandboxed') return 'so the rules decide, on tools of tools.allow alone'
  if (untried !== proven) return 'so a rule of a pattern takes a tool that has earned trust'
  return untried === 'allow' ? 'and the rule that names the tool exactly decides' : 'and the rules decide'
}

function approvalStep({ listeners }: Governance, stands: StandingApproval | null): ExplainedStep {
  if (stands !== null)
    return pass('approval', `${stands.id} stands for this call of uid ${stands.principal} (${stands.scope})`)
  if (listeners === 0)
    return refuse(
      'approval',
      'no operator is subscribed, and asking nobody is a no; see sallyport approvals --watch',
    )
  return {
    step: 'approval',
    verdict: 'ask',
    detail: `${counted(listeners, 'subscribed operator connection')} would be asked`,
  }
}

const pass = (step: ExplainedStep['step'], detail: string): ExplainedStep => ({
  step,
  verdict: 'pass',
  detail,
})

const refuse = (step: ExplainedStep['step'], detail: string): ExplainedStep => ({
  step,
  verdict: 'refuse',
  detail,
})
