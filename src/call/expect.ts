// What a proposal must be to go on: each of these gives what the next step needs, or throws what the caller is told.
import type { Proposal } from '../schema/governor.ts'
import { members } from '../lib/json-scan.ts'
import { latin1, unicode } from '../lib/one-way.ts'
import { canonicalize, NotCanonical } from './canonical.ts'
import { type Inexact, inexactNumber, misjudged } from './inexact.ts'
import type { ApprovalAnswer, GovernPorts, Standing } from './ports.ts'
import { denied, heldBeforeAsking, refusals } from './refusal.ts'

/** What is said in a proposal. */
export type Said = Pick<Proposal, 'server' | 'kind' | 'subject' | 'arguments' | 'bytes' | 'principal'>

/** What was accepted under the name, as it stands; else why it does not. */
export function expectAccepted(standing: Standing, proposal: Proposal): Standing & { state: 'accepted' } {
  const { state } = standing
  // Of a server that is halted for what it did, that it is not there says less.
  if (proposal.obstacle !== null && state !== 'ungoverned' && state !== 'violated') throw proposal.obstacle
  if (state === 'accepted') return standing
  throw denied(proposal, refusals[standing.state], standing.reason)
}

/** The arguments’ one form. */
export function canonical(proposal: Said): string {
  try {
    return canonicalize(proposal.arguments)
  } catch (error) {
    if (!(error instanceof NotCanonical)) throw error
    throw denied(proposal, 'ERR_ARGUMENTS_INVALID', error.message)
  }
}

/** Null, or where and why the arguments, whose canonical form is `text`, are not what the accepted schema says; a promise where that takes long to tell. */
export function invalid(
  { server, subject, arguments: args, bytes, principal }: Said,
  { tool }: Standing & { state: 'accepted' },
  text: string,
  registry: Pick<GovernPorts['registry'], 'invalidArguments'>,
): Promise<string | null> | string | null {
  if (tool === null) return null
  const number = holdsNumber(args)
    ? inexactArgument(bytes, (text) => misjudged(text, tool.declaration.parameters))
    : null
  if (number !== null) return notExact(number, 'the schema would judge another number')
  return registry.invalidArguments(server.name, subject, args, text, principal)
}

/** Whether there is any number in a value, which is quicker to tell than whether its text has what only numbers have. */
function holdsNumber(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsNumber)
  if (typeof value !== 'object' || value === null) return typeof value === 'number'
  for (const key in value) if (holdsNumber((value as Readonly<Record<string, unknown>>)[key])) return true
  return false
}

/** What is found in the arguments of a call's params: what stands beside them no schema reads, and nobody approves. */
function inexactArgument(params: string, find: (json: string) => Inexact | null): Inexact | null {
  if (inexactNumber(params) === null) return null
  const text = latin1(params)
  const given = members(text, 0, text.length).find(({ key }) => key === 'arguments')
  return given === undefined ? null : find(unicode(text.slice(given.start, given.end)))
}

/** Throws where there is a problem. */
export function expectValid(problem: string | null, proposal: Said): void {
  if (problem !== null) throw denied(proposal, 'ERR_ARGUMENTS_INVALID', problem)
}

/** Whoever says yes to a number says it to the one that the server reads. */
export function expectReadAlike(proposal: Said): void {
  const { kind, bytes } = proposal
  const number = kind === 'tool' ? inexactArgument(bytes, inexactNumber) : inexactNumber(bytes)
  if (number !== null) expectValid(notExact(number, 'who approves it could read another number'), proposal)
}

/** Nobody is asked about what would be refused whatever was said. */
export function expectAskable(
  proposal: Proposal,
  { identity }: { readonly identity: string },
  registry: Pick<GovernPorts['registry'], 'hold'>,
): void {
  expectReadAlike(proposal)
  const { server, subject, lineage } = proposal
  const hold = registry.hold(server.name, subject, lineage)
  if (hold !== null) throw heldBeforeAsking(proposal, identity, hold)
}

const notExact = ({ written, read }: Inexact, so: string): string =>
  `${written.slice(0, 40)} is more than a double holds, so that ${so}; write ${read}, or pass it as a string`

/** Throws what a call of that identity is told to which nobody said yes. */
export function expectYes(
  { by, isTimeout, reason }: Extract<ApprovalAnswer, { granted: false }>,
  proposal: Proposal,
  identity: string,
  registry: Registry,
): Promise<never> {
  if (isTimeout) throw denied(proposal, 'ERR_APPROVAL_TIMEOUT', reason)
  if (by !== null) throw denied(proposal, 'ERR_APPROVAL_DENIED', reason)
  return whyUnanswered(proposal, identity, registry, reason)
}

/** Nobody said no: what was to be approved is not what was accepted any more, or there was nobody. */
async function whyUnanswered(
  proposal: Proposal,
  asked: string,
  registry: Registry,
  reason: string,
): Promise<never> {
  const { server, instance, kind, subject } = proposal
  await proposal.comparing()
  const { identity } = expectAccepted(registry.standing(server.name, instance, kind, subject), proposal)
  const why =
    identity === asked
      ? reason
      : `${reason}: it was accepted anew, as ${identity}, while a yes to ${asked} was waited for; call again`
  throw denied(proposal, 'ERR_APPROVAL_UNAVAILABLE', why)
}

type Registry = Pick<GovernPorts['registry'], 'standing'>
