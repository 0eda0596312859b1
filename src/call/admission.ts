// What a call is told by: in the question about it, its permit and its intent, when its secrets and its place are asked for, and once it has passed its check.
import type { Admission, Proposal, Turn } from '../schema/governor.ts'
import { withBeside } from './beside.ts'
import type { Decided, Permitted } from './passed.ts'
import type { Binding, Permit } from './permit.ts'
import type { ApprovalAnswer, ApprovalQuestion, CallEquipment, Intent, LeaseAsk } from './ports.ts'
import { repeatDigest } from './repeat.ts'

const none: readonly string[] = []

/** What an operator is asked. */
export function questionOf(
  proposal: Proposal,
  { proposed, trust, policyVersion }: Decided,
  reason: string,
): ApprovalQuestion {
  const { text, argumentsDigest, bytesDigest, standing } = proposed
  return {
    ...proposal,
    identity: standing.identity,
    argumentsDigest,
    bytesDigest,
    policyVersion,
    trustEpoch: trust.epoch,
    repeatDigest: repeatDigest(proposal),
    reason,
    text: withBeside(text, proposal),
  }
}

/** How an answer stands in its record. */
export function answerOnRecord(given: ApprovalAnswer): Readonly<Record<string, unknown>> {
  if (given.granted) return given
  const { granted, by, reason, isTimeout } = given
  return { granted, by, reason, timed_out: isTimeout }
}

/** What a permit is for. */
export function bindingOf(
  { lineage, principal }: Proposal,
  { proposed, trust, policyVersion }: Decided,
  approval: string | null,
): Binding {
  const { standing, argumentsDigest, bytesDigest } = proposed
  const { sideEffects = none, resourceScopes = none } = standing.tool?.declaration ?? {}
  return {
    identity: standing.identity,
    argumentsDigest,
    bytesDigest,
    sideEffects,
    resourceScopes,
    lineage,
    approval,
    policyVersion,
    trustEpoch: trust.epoch,
    principal,
  }
}

export function leaseAskOf(
  { call, server, instance, kind, subject, principal }: Proposal,
  { proposed }: Decided,
  { id, binding }: Permit,
): LeaseAsk {
  const { sideEffects } = binding
  const { credentials = none } = proposed.standing.tool?.declaration ?? {}
  return {
    call,
    permit: id,
    server: server.name,
    instance,
    kind,
    subject,
    principal,
    sideEffects,
    credentials,
  }
}

/** `foreseen` is what it says of the secrets that the call will hold. */
export function intentOf(
  { call, lineage, id, evidence }: Proposal,
  { decided, permit }: Permitted,
  foreseen: Intent['foreseen'],
): Intent {
  const { about, proposed } = decided
  const { argumentsDigest, bytesDigest } = proposed
  const { approval } = permit.binding
  return {
    call,
    about,
    argumentsDigest,
    bytesDigest,
    permit: permit.id,
    approval,
    lineage,
    id,
    foreseen,
    request: evidence,
  }
}

/** `intent` is the seq of its record, `trustEpoch` the one at its check. */
export function admissionOf(
  { call, instance, server, kind, subject, principal, peer, lineage, comparing }: Proposal,
  { decided, permit, repeats }: Permitted,
  { process, secrets }: CallEquipment,
  intent: number,
  trustEpoch: number,
  refuse: Admission['refuse'],
  turn: Turn,
): Admission {
  const { identity, approval } = permit.binding
  return {
    call,
    instance,
    server: server.name,
    kind,
    subject,
    identity,
    permit: permit.id,
    intent,
    approval,
    policyVersion: decided.policyVersion,
    trustEpoch,
    repeats,
    principal,
    peer,
    lineage,
    process,
    refuse,
    comparing,
    secrets,
    turn,
    target: decided.about.target,
  }
}
