// How a call was decided and what came of it, out of the records that name it.
import { SallyportError } from '../../errors.ts'
import type { JournalRecord } from '../../journal/record.ts'
import type { CallId } from '../../lib/ids.ts'
import type { ExplainedCall } from '../../rpc/governed.ts'

type Body = Readonly<Record<string, unknown>>
type Row = Pick<JournalRecord, 'seq' | 'at'> & { readonly body: Body }

/** Reads the records of one call, oldest first. Throws ERR_RECORD_NOT_FOUND where there are none. */
export function explainCall(
  id: CallId,
  records: readonly JournalRecord[],
  presentPolicy: (server: string) => string,
): Omit<ExplainedCall, 'place'> {
  const { intent, outcome, refusal, used } = rowsOf(records)
  const first = intent ?? refusal ?? used ?? outcome
  if (first === null)
    throw new SallyportError(
      'ERR_RECORD_NOT_FOUND',
      `the journal has no record of ${id}: a call that still waits for an answer has none, nor has one whose segment was let go of`,
    )
  // What the decision stood on is in the intent; of a call that was refused, in what was recorded of its approval.
  const basis = (intent ?? used)?.body ?? {}
  const about = { ...first.body, ...basis }
  const said = refusal?.body ?? {}
  const refused = refusal === null ? null : refusalOf(refusal)
  const approval = used === null ? null : approvalOf(used)
  const isUnsent = intent === null && outcome === null && refusal === null
  const version = text(about['policy']) ?? ''
  const server = text(about['server']) ?? ''
  const explained = {
    call_id: id,
    server,
    subject: text(about['subject']) ?? '',
    identity: text(about['identity']),
    principal: text(about['principal']) ?? '',
    session: text(about['session']) ?? '',
    state: refusal !== null || isUnsent ? 'refused' : outcome === null ? 'waiting' : 'done',
    action: actionOf(text(said['code']), approval !== null, intent !== null),
    rule: text(basis['rule']) ?? text(said['rule']),
    reason: isUnsent ? unsent : (text(said['reason']) ?? text(basis['reason']) ?? ''),
    policy: { version, is_present: version === presentPolicy(server) },
    trust: trustOf(basis),
    approval,
    permit: text(intent?.body['permit']),
    check: refusal === null ? checkOf(intent, outcome) : text(said['check']),
    intent: intent === null ? null : { seq: intent.seq, at: intent.at },
    outcome: outcome === null ? null : outcomeOf(outcome),
    refusal: refused,
  } as const
  return { ...explained, change: changeOf(explained) }
}

/** Of a call that was answered for, and has no intent: in the next turn it has one, or is refused */
const unsent = 'it was never sent: its daemon ended before that'

/** What was recorded last of each kind; an answer under another policy than the one that decided in the end was for nothing. */
function rowsOf(
  records: readonly JournalRecord[],
): Record<'intent' | 'outcome' | 'refusal' | 'used', Row | null> {
  const last = (type: string): Row | null => {
    const found = records.findLast((record) => record.type === type)
    return found === undefined ? null : { seq: found.seq, at: found.at, body: asBody(found.body) }
  }
  const [intent, outcome, refusal] = [last('call.intent'), last('call.outcome'), last('call.denied')]
  const asked = last('approval.used')
  const decided = intent ?? refusal
  const used = decided === null || decided.body['policy'] === asked?.body['policy'] ? asked : null
  return { intent, outcome, refusal, used }
}

/** The intent is on record before the check, so that of it alone, and of a call that outlived its daemon, nobody knows. */
function checkOf(intent: Row | null, outcome: Row | null): ExplainedCall['check'] {
  if (outcome === null) return intent === null ? null : 'unknown'
  return outcome.body['outcome'] === 'unknown' ? 'unknown' : 'passed'
}

function outcomeOf({ seq, at, body }: Row): NonNullable<ExplainedCall['outcome']> {
  return { seq, at, outcome: text(body['outcome']) ?? '', detail: text(body['detail']) }
}

function refusalOf({ seq, at, body }: Row): ExplainedCall['refusal'] {
  const code = text(body['code'])
  return code === null ? null : { seq, at, code }
}

function approvalOf({ seq, body }: Row): NonNullable<ExplainedCall['approval']> {
  return {
    seq,
    id: text(body['approval']),
    granted: body['granted'] === true,
    scope: text(body['scope']),
    by: text(body['by']),
    reason: body['granted'] === true ? null : text(body['reason']),
  }
}

function trustOf({ trust, trust_epoch: epoch }: Body): ExplainedCall['trust'] {
  const isTier = trust === 'untrusted' || trust === 'provisional' || trust === 'trusted'
  return isTier && typeof epoch === 'number' ? { tier: trust, epoch } : null
}

function actionOf(code: string | null, isAsked: boolean, isAdmitted: boolean): ExplainedCall['action'] {
  if (isAsked) return 'ask'
  if (isAdmitted) return 'allow'
  return code === 'ERR_POLICY_DENIED' || code === 'ERR_MESSAGE_AMBIGUOUS' ? 'deny' : null
}

/** An allow by a pattern need not be enough, and an earlier rule that asks would stand before it: what is named is. */
function changeOf({
  server,
  subject,
  rule,
  refusal,
  check,
  approval,
}: Omit<ExplainedCall, 'change' | 'place'>): string {
  const where = rule === null ? '' : `, before ${rule}`
  const allowing = `a rule that allows exactly mcp:${server}:${subject}${where}`
  if (refusal === null)
    return approval === null
      ? `a rule that asks or denies${where}`
      : `${allowing}, or one that denies it${approval.scope === 'once' ? '' : `, or sallyport deny ${approval.id ?? 'ID'} to end the approval`}`
  switch (refusal.code) {
    case 'ERR_POLICY_DENIED':
      return rule ?? `tools.allow and tools.deny in the entry of ${server}`
    case 'ERR_MESSAGE_AMBIGUOUS':
      return 'arguments that no reader takes differently'
    case 'ERR_ARGUMENTS_INVALID':
      return `arguments that fit the accepted schema; see sallyport tools ${server}`
    case 'ERR_DECLARATION_MISSING':
    case 'ERR_DECLARATION_MISMATCH':
    case 'ERR_IDENTITY_CHANGED':
      return `an acceptance of what ${server} is now: sallyport declare ${server}, then sallyport accept ${server}`
    case 'ERR_SURFACE_UNGOVERNED':
    case 'ERR_SCOPE_VIOLATION':
      return `an operator's word that ${server} may run again: sallyport release ${server}`
    case 'ERR_APPROVAL_DENIED':
      return `a yes to the question, or ${allowing}`
    case 'ERR_APPROVAL_TIMEOUT':
    case 'ERR_APPROVAL_UNAVAILABLE':
      return `an operator who answers (sallyport approvals --watch), or ${allowing}`
    case 'ERR_PERMIT_REFUSED':
      return check === 'checkpoint'
        ? 'the end of the hold: sallyport release NAME'
        : 'the same call again, if what changed meanwhile allows it'
    case 'ERR_TASK_NOT_FOUND':
      return `the id of a task that its caller began at ${server} itself`
    case 'ERR_SERVER_UNAVAILABLE':
      return `a server that comes up: sallyport test ${server}`
    default:
      return `what ${refusal.code} means, and who can mend it, is in docs/errors.md`
  }
}

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

const asBody = (value: unknown): Body => (typeof value === 'object' && value !== null ? { ...value } : {})
