// A governed call, from proposal to outcome: ten steps, in this order, and no other way to a server.
import { unlessAborted } from '../lib/deadline.ts'
import { Together, wholeTurnMs } from '../lib/together.ts'
import { admissionOf, answerOnRecord, bindingOf, intentOf, leaseAskOf, questionOf } from './admission.ts'
import { digestOf, sentDigest } from './canonical.ts'
import type { Admission, Asker, Proposal, Turn, Waiting } from '../schema/governor.ts'
import { isStill } from './decide.ts'
import type { Decided, Permitted, Proposed } from './passed.ts'
import { askingOf, isStillSo, turnOnYes } from './turn-of-call.ts'
import type { ApprovalAnswer, CallEquipment, Ended, GovernPorts, Told, Yes } from './ports.ts'
import { canonical, expectAccepted, expectAskable, expectValid, expectYes, invalid } from './expect.ts'
import { denied, refusedAtBoundary, unseen } from './refusal.ts'
import { refuse } from './refuse.ts'
import { isAsItWas } from './trust.ts'

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

const none: readonly string[] = []

/**
 * Takes a proposal through steps 1 to 8 and makes its intent durable; what is left is to send it.
 *
 * Every refusal is recorded and told as the `SallyportError` that the caller is to hear. Where the record itself
 * cannot be made, that is the error (MP-FH-010). Nothing has reached the server when the asker is told.
 */
export function govern(proposal: Proposal, ports: GovernPorts, waiting: Waiting, asker: Asker): void {
  const passage = new Passage(proposal, ports, waiting, asker)
  passage.attempt(() => passage.propose())
}

/** The calls of one turn are all proposed before any is digested, all digested before any is decided, and so on. */
const [digesting, permitting] = [new Together(), new Together()]
const deciding = new Together({ turnMs: wholeTurnMs })

/** What is left of the steps where something has to be waited for; null where they were taken in this turn. */
type Later = Promise<unknown> | null

/** One call on its way; each method takes some steps, and goes on with the next without a promise where it can. */
class Passage implements Told {
  readonly #proposal: Proposal
  readonly #ports: GovernPorts
  readonly #waiting: Waiting
  readonly #asker: Asker
  #permitted: Permitted | null = null
  /** Its place among the calls that the server works on */
  #turn: Turn | null = null

  constructor(proposal: Proposal, ports: GovernPorts, waiting: Waiting, asker: Asker) {
    this.#proposal = proposal
    this.#ports = ports
    this.#waiting = waiting
    this.#asker = asker
  }

  /** Takes some steps; a call that fails in one of them is not made. */
  attempt(steps: () => Later): void {
    try {
      steps()?.catch((error: unknown) => this.failed(error))
    } catch (error) {
      this.failed(error)
    }
  }

  /** Goes on when all calls of this turn have come as far. */
  #together(step: Together, steps: () => Later): null {
    step.add(() => this.attempt(steps), this.#proposal.session)
    return null
  }

  propose(): Later {
    const proposal = this.#proposal
    const { server, instance, kind, subject } = proposal
    const { registry } = this.#ports

    // 1. propose: the name becomes the canonical identity of something that was accepted, or nothing happens.
    const found = registry.standing(server.name, instance, kind, subject)
    const first = unseen(found, proposal)
    if (first !== null) return unlessAborted(first, this.#waiting.signal).then(() => this.propose())
    const standing = expectAccepted(found, proposal)

    // 2. canonicalize: one form to digest and to judge, the exact bytes beside it, valid for the accepted schema.
    const text = canonical(proposal)
    return this.#together(digesting, () => this.#digest(standing, text))
  }

  #digest(standing: Proposed['standing'], text: string): Later {
    const { bytes, evidence } = this.#proposal
    const [argumentsDigest, bytesDigest] = [digestOf(text), sentDigest(bytes, evidence)]
    const proposed = { standing, text, argumentsDigest, bytes, bytesDigest }
    const problem = invalid(this.#proposal, standing, text, this.#ports.registry)
    if (problem instanceof Promise) return problem.then((late) => this.#decide(proposed, late))
    return this.#together(deciding, () => this.#decide(proposed, problem))
  }

  #decide(proposed: Proposed, problem: string | null): Later {
    const [proposal, ports] = [this.#proposal, this.#ports]
    const { server, kind, subject, session, principal, peer } = proposal
    if (this.#waiting.reason) throw this.#waiting.reason // it was taken back while others had their turns
    expectValid(problem, proposal)

    // 3. decide: by lists, trust and rules, on what the server will read.
    const policyVersion = ports.policyVersion(server.name)
    const trust = ports.registry.trust(server.name, subject)
    const request = { server, kind, subject, arguments: proposal.arguments }
    const decision = ports.decide(request, trust)
    if (decision.action === 'deny')
      throw denied(proposal, decision.code ?? 'ERR_POLICY_DENIED', decision.reason, decision.rule)

    // 4. evidence: what the decision stood on, in every record from here.
    const { identity, declarationVersion } = proposed.standing
    const { rule, reason } = decision
    const about = ports.abouts.of(
      { server: server.name, kind, subject, identity, principal, peer, trust_epoch: trust.epoch },
      { session, declaration: declarationVersion, policy: policyVersion, rule, reason, trust: trust.tier },
    )
    const decided = { proposed, request, trust, about, policyVersion }
    if (decision.action === 'ask') return this.#approve(decided, reason)
    this.#turn ??= ports.turns.take(proposal)
    if (this.#turn === null) return this.#waitForTurn(decided)
    return this.#together(permitting, () => this.#permit(decided, null))
  }

  #waitForTurn(decided: Decided): null {
    const permit = (): null => this.#together(permitting, () => this.#permit(decided, null))
    const given = (turn: Turn): void => {
      this.#turn = turn
      this.attempt(() => (isStillSo(decided, this.#proposal, this.#ports) ? permit() : this.propose()))
    }
    this.#ports.turns.wait(this.#proposal, this.#waiting, { given, refused: (error) => this.failed(error) })
    return null
  }

  #endTurn(): void {
    const turn = this.#turn
    this.#turn = null
    turn?.end()
  }

  async #approve(decided: Decided, reason: string): Promise<unknown> {
    const [proposal, ports, waiting] = [this.#proposal, this.#ports, this.#waiting]

    // 5. approve: where the rule says ask, a person says yes to exactly this, or it is a no.
    expectAskable(proposal, decided.proposed.standing, ports.registry)
    const asking = askingOf(waiting, () => this.#endTurn())
    const given = await ports.approver.ask(questionOf(proposal, decided, reason), asking)
    if (!given.granted) return this.#recordApproval(decided, given)
    this.#turn ??= ports.turns.take(proposal)
    if (this.#turn !== null) return this.#recordApproval(decided, given)
    this.#turn = await turnOnYes(proposal, given, waiting, ports)
    if (this.#turn === null) return this.#recordApproval(decided, ports.approver.claim(given))
    if (given.scope === 'once') return this.#recordApproval(decided, given)
    ports.approver.claim(given)
    return this.propose() // what was said of more than this call may be over by now
  }

  async #recordApproval(decided: Decided, given: ApprovalAnswer): Promise<unknown> {
    const [proposal, ports] = [this.#proposal, this.#ports]
    const { about, policyVersion } = decided
    const { argumentsDigest, bytesDigest, standing } = decided.proposed

    // 6. record approval: durable before anything stands on it.
    const digests = { arguments_digest: argumentsDigest, bytes_digest: bytesDigest }
    const { call, server, lineage } = proposal
    const used = { call, ...about.target, ...about.basis, lineage, ...digests, ...answerOnRecord(given) }
    const [recorded] = await Promise.allSettled([ports.recorder.record('approval.used', used)])
    const answer = ports.approver.claim(given) // an operator may have taken a yes back
    if (recorded.status === 'rejected') throw recorded.reason
    // Nobody said no: the call was taken back, or what it was for is gone.
    if (!answer.granted && answer.by === null) this.#waiting.signal.throwIfAborted()
    // The question was one of a policy that does not hold any more: what holds now decides, from the beginning.
    if (ports.policyVersion(server.name) !== policyVersion) return this.propose()
    if (answer.granted) return this.#permit(decided, answer) // in this turn: a no finds the yes, or its permit
    return expectYes(answer, proposal, standing.identity, ports.registry)
  }

  #permit(decided: Decided, yes: Yes | null): null {
    const proposal = this.#proposal
    const { permits, permitTtlMs, foresee, recorder } = this.#ports

    // 7. permit: bound to all of it, for one use, for a short time.
    const binding = bindingOf(proposal, decided, yes?.approval ?? null)
    const permit = permits.issue(binding, permitTtlMs(proposal.server.name))
    const ask = leaseAskOf(proposal, decided, permit)
    this.#permitted = { decided, permit, ask, repeats: yes?.repeats === true }

    // The intent, durable before the effect. Before the check, so that nothing lies between the check and the dispatch.
    recorder.intent(intentOf(proposal, this.#permitted, foresee(ask)), this)
    return null
  }

  /** The intent is: the secrets that the declaration names are read, for this permit alone. Mostly there are none. */
  durable({ seq }: { readonly seq: number }): void {
    const permitted = this.#permitted as Permitted
    let equipping: ReturnType<GovernPorts['equip']>
    try {
      equipping = this.#ports.equip(permitted.ask, this.#waiting)
    } catch (error) {
      return this.failed(error, seq)
    }
    if (!(equipping instanceof Promise)) return this.#dispatch(permitted, seq, equipping)
    const failed = (error: unknown): void => this.failed(error, seq)
    equipping.then((equipment) => this.#dispatch(permitted, seq, equipment), failed)
  }

  /** What the server said of its lists while a person, a disk or a secret was waited for is compared first, and what is owed by now recorded. */
  #dispatch(permitted: Permitted, seq: number, equipment: CallEquipment): void {
    let admission: Admission
    try {
      const first = this.#proposal.comparing() ?? this.#ports.owed()
      if (first !== null) return this.#dispatchLater(first, permitted, seq, equipment)
      admission = this.#check(permitted, seq, equipment)
    } catch (error) {
      return this.#undispatched(equipment, error, seq)
    }
    // 9. dispatch is the asker's next statement, in the same turn.
    this.#asker.admitted(admission)
  }

  #dispatchLater(first: Promise<void>, permitted: Permitted, seq: number, equipment: CallEquipment): void {
    const failed = (error: unknown): void => this.#undispatched(equipment, error, seq)
    const compared = unlessAborted(first, this.#waiting.signal)
    compared.then(() => this.#dispatch(permitted, seq, equipment), failed)
  }

  #undispatched(equipment: CallEquipment, error: unknown, intent: number): void {
    equipment.end()
    this.failed(error, intent)
  }

  #check(permitted: Permitted, intent: number, equipment: CallEquipment): Admission {
    const { server, instance, kind, subject, lineage, principal, bytes, isPart } = this.#proposal
    const { registry, permits, decide, policyVersion } = this.#ports
    const { decided, permit } = permitted
    const { request, trust, proposed } = decided
    const [{ identity, approval }, { argumentsDigest, bytesDigest }] = [permit.binding, proposed]

    // 8. check: the world as it is now, not as it was when the call was decided.
    const now = registry.standing(server.name, instance, kind, subject)
    const tool = now.state === 'accepted' ? now.tool : null
    const { sideEffects = none, resourceScopes = none } = tool?.declaration ?? {}
    const present = registry.trust(server.name, subject)
    const hold = registry.hold(server.name, subject, lineage)
    const failed = permits.spend(permit, {
      identity: now.state === 'accepted' ? now.identity : '',
      argumentsDigest,
      // A text can't change, so it is digested again only where another stands in its place.
      bytesDigest: bytes === proposed.bytes ? bytesDigest : digestOf(bytes),
      sideEffects,
      resourceScopes,
      lineage,
      policyVersion: policyVersion(server.name),
      trustEpoch: present.epoch,
      principal,
      contains: (effects, scopes) => registry.uncontained(server.name, effects, scopes) === null,
      isEligible: isAsItWas(trust, present) || isStill(decide(request, present).action, approval),
      hold,
    })
    if (failed !== null) {
      const outside = registry.uncontained(server.name, sideEffects, resourceScopes)
      const obstacle = { standing: now, outside, hold, word: permits.lastWord(permit.id) }
      throw refusedAtBoundary(this.#proposal, identity, failed, obstacle)
    }
    const turn = this.#turn as Turn
    if (equipment.process === null && !isPart)
      return admissionOf(this.#proposal, permitted, equipment, intent, present.epoch, null, turn)
    permits.keep(permit) // it is dispatched when its process is up, or all of its request admitted, or not at all
    const late: Admission['refuse'] = (error) =>
      refuse(this.#proposal, { permitted, intent }, error, this.#ports)
    return admissionOf(this.#proposal, permitted, equipment, intent, present.epoch, late, turn)
  }

  /** The call is not made: its permit ends, and the asker is told once that is on record. */
  failed(reason: unknown, intent: number | null = null): void {
    if (this.#permitted !== null) this.#ports.permits.end(this.#permitted.permit)
    const refused = refuse(this.#proposal, { permitted: this.#permitted, intent }, reason, this.#ports)
    void refused.then((failure) => this.#asker.refused(failure))
    this.#endTurn()
  }
}

/** Step 10: what came back, or that nothing did. */
export function recordOutcome(ended: Ended, ports: Pick<GovernPorts, 'recorder'>, told = nobody): void {
  ports.recorder.outcome(ended, told)
}

/** The journal's own events tell where it fails, and without a record there is no evidence. */
const nobody: Told = { durable: () => undefined, failed: () => undefined }
