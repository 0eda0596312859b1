// What a call would meet on its way, in the order in which it meets it, without making it.
import { isProvisional } from '../call/trust.ts'
import type { Decision, GovernedRequest } from '../schema/gate.ts'
import type { ServerSettings } from '../schema/settings.ts'
import type { OperatorMethods } from '../rpc/protocol.ts'
import type { ExplainedStep } from '../rpc/governed.ts'
import type { Policy } from '../supervisor/ports.ts'
import type { Governance } from './governance.ts'

type Asked = OperatorMethods['policy/explain']['params']
type Explanation = OperatorMethods['policy/explain']['result']

export interface ExplainPorts {
  readonly governance: Governance
  readonly policy: Policy
}

/** Explains one call; `server` is the one that it names. Starts nothing, records nothing. */
export async function explain(
  { governance, policy }: ExplainPorts,
  server: ServerSettings,
  { tool, arguments: value = {}, lineage = null }: Omit<Asked, 'lineage'> & { lineage?: string | null },
): Promise<Explanation> {
  const { ledger } = governance
  const kind = tool.includes('/') ? 'method' : 'tool'
  const request: GovernedRequest = { server, kind, subject: tool, arguments: value }
  const trust = ledger.trust(server.name, tool)
  const standing = ledger.standing(server.name, null, kind, tool)
  const decision = policy.gate.decide(request, isProvisional(trust))
  const hold = ledger.hold(server.name, tool, lineage)
  const steps: ExplainedStep[] = [
    serverStep(governance, server),
    standing.state === 'accepted'
      ? pass('acceptance', `accepted as ${standing.identity}`)
      : refuse('acceptance', standing.reason),
    await argumentsStep(governance, request),
    rulesStep(decision),
    trustStep(server, trust, decision),
    ...(decision.action === 'ask' ? [approvalStep(governance)] : []),
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
      : action === 'ask'
        ? 'asked'
        : 'sent',
    steps,
  }
}

function serverStep({ ledger }: Governance, server: ServerSettings): ExplainedStep {
  const { name, enabled, disabledReason, unenforceable } = server
  const halt = ledger.quarantined().find((one) => one.server === name)
  if (!enabled) return refuse('server', disabledReason ?? `server ${name} is disabled`)
  if (unenforceable.length > 0)
    return refuse('server', `this version cannot enforce ${unenforceable.join(', ')}`)
  if (halt !== undefined) return refuse('server', `${name} is quarantined (${halt.failure}): ${halt.reason}`)
  return pass('server', `${name} ${server.version}, profile ${server.profile}, may run`)
}

async function argumentsStep(governance: Governance, request: GovernedRequest): Promise<ExplainedStep> {
  const { server, kind, subject } = request
  if (kind === 'method') return pass('arguments', 'methods declare none')
  const problem = await governance.invalidArguments(server.name, subject, request.arguments)
  if (problem !== null) return refuse('arguments', problem)
  return pass('arguments', 'they are what the accepted schema says')
}

function rulesStep({ action, reason }: Decision): ExplainedStep {
  return {
    step: 'rules',
    verdict: action === 'allow' ? 'pass' : action === 'ask' ? 'ask' : 'refuse',
    detail: reason,
  }
}

function trustStep(
  server: ServerSettings,
  { tier, evidence, confidence }: ReturnType<Governance['ledger']['trust']>,
  { action }: Decision,
): ExplainedStep {
  const tool = `the tool is ${tier} after ${evidence} good calls, confidence ${confidence}`
  const detail = `the server is ${server.trust}; ${tool}`
  const isAsked = action === 'ask' && server.trust === 'untrusted' && tier === 'untrusted'
  return { step: 'trust', verdict: isAsked ? 'ask' : 'pass', detail }
}

function approvalStep({ listeners }: Governance): ExplainedStep {
  if (listeners === 0)
    return refuse(
      'approval',
      'no operator is subscribed, and asking nobody is a no; see sallyport approvals --watch',
    )
  return {
    step: 'approval',
    verdict: 'ask',
    detail: `${listeners} subscribed operator connections would be asked`,
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
