// A governed call, from proposal to outcome: ten steps, in this order, and no other way to a server.
import { SallyportError } from '../errors.ts'
import { canonicalize, digestOf, inexactNumber, NotCanonical } from './canonical.ts'
import type { Admission, Outcome, Proposal, Waiting } from '../schema/governor.ts'
import type { Action } from '../schema/settings.ts'
import type { ApprovalAnswer, CallEquipment, GovernPorts, Standing } from './ports.ts'
import { denied, refusals } from './refusal.ts'
import type { TrustRecord } from './trust.ts'

/** The steps of a governed call; docs/lifecycle.md lists the same words in the same order. */
export const governSteps = [
  'propose',
  'canonicalize',
  'decide',
  'evidence',
  'approve',
  'record approval',
  'permit',
  'check',
  'dispatch',
  'record outcome',
] as const

/**
 * Takes a proposal through steps 1 to 8 and makes its intent durable; what is left is to send it.
 *
 * Every refusal is recorded and thrown as the `SallyportError` that the caller is told. Where the record itself
 * cannot be made, that is the error (MP-FH-010). Nothing has reached the server when this throws.
 */
export async function govern(proposal: Proposal, ports: GovernPorts, waiting: Waiting): Promise<Admission> {
  try {
    return await admit(proposal, ports, waiting)
  } catch (error) {
    const failure = SallyportError.from(error)
    ports.refuse(proposal, failure)
    if (failure.code !== 'ERR_JOURNAL') await recordDenial(proposal, failure, ports)
    throw failure
  }
}

async function admit(proposal: Proposal, ports: GovernPorts, waiting: Waiting): Promise<Admission> {
  const { registry, permits } = ports
  const { server, instance, kind, subject, lineage, principal } = proposal

  // 1. propose: the name becomes the canonical identity of something that was accepted, or nothing happens.
  const standing = expectAccepted(registry.standing(server.name, instance, kind, subject), proposal)
  const { identity } = standing

  // 2. canonicalize: one form to digest and to judge, the exact bytes beside it, valid for the accepted schema.
  const text = canonical(proposal)
  const argumentsDigest = digestOf(text)
  const { bytes } = proposal
  const bytesDigest = digestOf(bytes)
  const problem = invalid(proposal, standing, ports)
  expectValid(problem instanceof Promise ? await problem : problem, proposal)

  // 3. decide: by lists, trust and rules, on what the server will read.
  const trust = registry.trust(server.name, subject)
  const request = { server, kind, subject, arguments: proposal.arguments }
  const decision = ports.decide(request, trust)
  if (decision.action === 'deny')
    throw denied(proposal, decision.code ?? 'ERR_POLICY_DENIED', decision.reason, decision.rule)

  // 4. evidence: what the decision stood on, in every record from here.
  const sideEffects = standing.tool?.declaration.sideEffects ?? []
  const resourceScopes = standing.tool?.declaration.resourceScopes ?? []
  const about = ports.abouts.of(
    {
      server: server.name,
      kind,
      subject,
      identity,
      principal,
      peer: proposal.peer,
      trust_epoch: trust.epoch,
    },
    {
      session: proposal.session,
      declaration: standing.declarationVersion,
      policy: ports.policyVersion,
      rule: decision.rule,
      reason: decision.reason,
      trust: trust.tier,
    },
  )
  const digests = { arguments_digest: argumentsDigest, bytes_digest: bytesDigest }

  // 5. approve: where the rule says ask, a person says yes to exactly this, or it is a no.
  let approval: string | null = null
  if (decision.action === 'ask') {
    expectReadAlike(proposal)
    const question = {
      ...proposal,
      identity,
      argumentsDigest,
      bytesDigest,
      trustEpoch: trust.epoch,
      text,
      reason: decision.reason,
    }
    const answer = await ports.approver.ask(question, waiting)
    // 6. record approval: durable before anything stands on it.
    const { target, basis } = about
    const used = { call: proposal.call, ...target, ...basis, lineage, ...digests, ...answer }
    await ports.recorder.record('approval.used', used)
    approval = expectGranted(answer, proposal)
  }

  // 7. permit: bound to all of it, for one use, for a short time.
  const binding = {
    identity,
    argumentsDigest,
    bytesDigest,
    sideEffects,
    resourceScopes,
    lineage,
    approval,
    policyVersion: ports.policyVersion,
    trustEpoch: trust.epoch,
    principal,
  }
  const permit = permits.issue(binding, ports.permitTtlMs)

  // The intent, durable before the effect. Before the check, so that nothing lies between the check and the dispatch.
  const credentials = standing.tool?.declaration.credentials ?? []
  const ask = { call: proposal.call, server: server.name, instance, kind, subject, sideEffects, credentials }
  let seq: number
  let equipment: CallEquipment
  try {
    ;({ seq } = await ports.recorder.recordCall('call.intent', {
      about: [about.target, about.basis],
      own: { call: proposal.call, ...digests, permit: permit.id, approval },
      said: { lineage, ...ports.foresee(ask) },
      raw: { request: proposal.evidence },
    }))
    // The secrets that the declaration names, read for this permit alone; where there are none, nothing is waited for.
    const equipping = ports.equip({ ...ask, permit: permit.id }, waiting)
    equipment = equipping instanceof Promise ? await equipping : equipping
  } catch (error) {
    permits.end(permit) // it was for this call, which is not made
    throw error
  }

  // 8. check: the world as it is now, not as it was when the call was decided.
  const now = registry.standing(server.name, instance, kind, subject)
  const present = registry.trust(server.name, subject)
  const failed = permits.spend(permit, {
    identity: now.state === 'accepted' ? now.identity : '',
    argumentsDigest,
    // A text can't change, so it is digested again only where another stands in its place.
    bytesDigest: proposal.bytes === bytes ? bytesDigest : digestOf(proposal.bytes),
    sideEffects,
    resourceScopes,
    lineage,
    trustEpoch: present.epoch,
    principal,
    contains: (effects, scopes) => registry.uncontained(server.name, effects, scopes) === null,
    isEligible: isAsItWas(trust, present) || isStill(ports.decide(request, present).action, approval),
    hold: registry.hold(server.name, subject, lineage),
  })
  if (failed !== null) {
    equipment.end()
    const outside =
      failed === 'side-effects' ? registry.uncontained(server.name, sideEffects, resourceScopes) : null
    const why = outside === null ? failed : `${failed}: ${outside}`
    throw new SallyportError(
      'ERR_PERMIT_REFUSED',
      `the permit for ${identity} was refused at the boundary: ${why}; nothing was sent`,
      { check: failed, server: server.name, tool: subject },
    )
  }

  // 9. dispatch is the caller's next statement, in the same turn.
  return {
    call: proposal.call,
    instance,
    server: server.name,
    kind,
    subject,
    identity,
    permit: permit.id,
    intent: seq,
    approval,
    trustEpoch: present.epoch,
    principal,
    peer: proposal.peer,
    lineage,
    process: equipment.process,
    secrets: equipment.secrets,
    target: about.target,
  }
}

/** Step 10: what came back, or that nothing did. */
export async function recordOutcome(
  { call, target, intent, permit }: Admission,
  { kind, durationMs, detail, bytes }: Outcome,
  { recorder }: Pick<GovernPorts, 'recorder'>,
  /** What became of the call's secrets; null where it had none */
  used: Readonly<Record<string, unknown>> | null = null,
): Promise<void> {
  await recorder.recordCall('call.outcome', {
    about: [target],
    own: { call, intent, permit, outcome: kind, duration_ms: durationMs },
    said: { detail, ...used },
    raw: bytes === null ? {} : { response: bytes },
  })
}

async function recordDenial(proposal: Proposal, failure: SallyportError, ports: GovernPorts): Promise<void> {
  const { code, failure: id } = failure.toRpc().data
  const { rule = null, check = null } = failure.details
  await ports.recorder.record(
    'call.denied',
    {
      call: proposal.call,
      server: proposal.server.name,
      kind: proposal.kind,
      subject: proposal.subject,
      principal: proposal.principal,
      peer: proposal.peer,
      session: proposal.session,
      lineage: proposal.lineage,
      bytes_digest: digestOf(proposal.bytes),
      policy: ports.policyVersion,
      rule,
      check,
      code,
      failure: id,
      reason: failure.message,
    },
    { request: proposal.evidence },
  )
}

function expectAccepted(standing: Standing, proposal: Proposal): Standing & { state: 'accepted' } {
  const { state } = standing
  // Of a server that is halted for what it did, that it is not there says less.
  if (proposal.obstacle !== null && state !== 'ungoverned' && state !== 'violated') throw proposal.obstacle
  if (state === 'accepted') return standing
  throw denied(proposal, refusals[standing.state], standing.reason)
}

function canonical(proposal: Proposal): string {
  try {
    return canonicalize(proposal.arguments)
  } catch (error) {
    if (!(error instanceof NotCanonical)) throw error
    throw denied(proposal, 'ERR_ARGUMENTS_INVALID', error.message)
  }
}

function invalid(
  { server, subject, arguments: args }: Proposal,
  { tool }: Standing & { state: 'accepted' },
  { registry }: GovernPorts,
): Promise<string | null> | string | null {
  return tool === null ? null : registry.invalidArguments(server.name, subject, args)
}

function expectValid(problem: string | null, proposal: Proposal): void {
  if (problem !== null) throw denied(proposal, 'ERR_ARGUMENTS_INVALID', problem)
}

/** Whoever says yes to a number says it to the one that the server reads. */
function expectReadAlike(proposal: Proposal): void {
  const number = inexactNumber(proposal.bytes)
  if (number === null) return
  const what = `${number.slice(0, 40)} is more than a double holds, so that who approves it could read another number`
  throw denied(proposal, 'ERR_ARGUMENTS_INVALID', `${what}; pass it as a string`)
}

function expectGranted(answer: ApprovalAnswer, proposal: Proposal): string {
  if (answer.granted) return answer.approval
  throw denied(
    proposal,
    answer.isTimeout
      ? 'ERR_APPROVAL_TIMEOUT'
      : answer.by === null
        ? 'ERR_APPROVAL_UNAVAILABLE'
        : 'ERR_APPROVAL_DENIED',
    answer.reason,
  )
}

/** What is decided by trust is decided by these two alone. */
const isAsItWas = (before: TrustRecord, now: TrustRecord): boolean =>
  before.epoch === now.epoch && before.tier === now.tier

/** A decision made again: what was allowed must be allowed, what was approved must not be denied. */
const isStill = (action: Action, approval: string | null): boolean =>
  action === 'allow' || (action === 'ask' && approval !== null)
