// A call that has passed its check: all that its dispatch, its outcome and a later look at it go by.
import type { Admission, Proposal } from '../schema/governor.ts'
import type { Permitted } from './passed.ts'
import type { CallEquipment } from './ports.ts'

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
