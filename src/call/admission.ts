// What a call is told by: when its secrets and its place are asked for, and once it has passed its check.
import type { Admission, Proposal } from '../schema/governor.ts'
import type { Permitted } from './passed.ts'
import type { CallEquipment, LeaseAsk } from './ports.ts'

export function leaseAskOf(
  { call, server, instance, kind, subject, principal }: Proposal,
  permit: string,
  sideEffects: LeaseAsk['sideEffects'],
  credentials: LeaseAsk['credentials'],
): LeaseAsk {
  return { call, permit, server: server.name, instance, kind, subject, principal, sideEffects, credentials }
}

/** `intent` is the seq of its record, `trustEpoch` the one at its check. */
export function admissionOf(
  { call, instance, server, kind, subject, principal, peer, lineage, comparing }: Proposal,
  { decided, permit }: Permitted,
  { process, secrets }: CallEquipment,
  intent: number,
  trustEpoch: number,
  refuse: Admission['refuse'],
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
    principal,
    peer,
    lineage,
    process,
    refuse,
    comparing,
    secrets,
    target: decided.about.target,
  }
}
