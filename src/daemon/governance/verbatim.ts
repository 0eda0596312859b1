// What policy goes by stands in records as it was given; all else that they say is words, out of which secrets are taken.
import type { Target } from '../../call/about.ts'
import type { Fact } from '../../call/facts.ts'
import type { StandingApproval } from '../../call/standing-approval.ts'
import type { Redaction, Redactor } from '../../schema/redactor.ts'
import type { RecordType } from '../../schema/record-type.ts'
import type { Registered } from '../entries.ts'

type Body = Readonly<Record<string, unknown>>

/** An approval that stands, as its record has it. */
export type Stored = Omit<StandingApproval, 'expiresAt'> & {
  readonly granted_at: string
  readonly expires_at: string
}

/** Members that are kept as they are, and members of what is in an object or in each of a list. What is not named here is words. */
interface Given {
  readonly [member: string]: 'given' | 'words' | Given
}

/** Every member of what a fold reads is one or the other; whoever adds one says which. */
type Each<T> = Readonly<Record<keyof T, 'given' | 'words'>>

const hold = { name: 'given', server: 'given', tool: 'given', lineage: 'given' } as const

const ofFacts: { readonly [T in Fact['type']]: Each<Extract<Fact, { readonly type: T }>['body']> } = {
  'surface.accepted': {
    server: 'given',
    serverVersion: 'given',
    codeDigest: 'given',
    saidVersion: 'given',
    declarationVersion: 'given',
    tools: 'given',
    restDigest: 'given',
    instructionsDigest: 'given',
    leftOut: 'given',
    unread: 'given',
    renews: 'given',
    acceptedBy: 'given',
  },
  'surface.changed': { server: 'given', became: 'given' },
  'call.outcome': {
    server: 'given',
    kind: 'given',
    subject: 'given',
    outcome: 'given',
    identity: 'given',
    trust_epoch: 'given',
    repeats: 'given',
    off_schema: 'words',
  },
  'trust.violated': { server: 'given', tool: 'given', at: 'given', failure: 'given', detail: 'words' },
  'trust.reset': { server: 'given', tool: 'given', reason: 'words', by: 'given' },
  'server.quarantined': {
    server: 'given',
    origin: 'given',
    owner: 'given',
    failure: 'given',
    reason: 'words',
  },
  'server.released': { server: 'given', reason: 'words' },
  'server.removed': { server: 'given', by: 'given', scope: 'given' },
  'hold.placed': hold,
  'hold.released': hold,
}

const target: Each<Target> = {
  server: 'given',
  kind: 'given',
  subject: 'given',
  identity: 'given',
  principal: 'given',
  peer: 'given',
  trust_epoch: 'given',
}
const registered: Each<Registered> = { server: 'given', entry: 'given', directory: 'given', by: 'given' }
const standing: Each<Stored> = {
  id: 'given',
  scope: 'given',
  identity: 'given',
  argumentsDigest: 'given',
  repeatDigest: 'given',
  principal: 'given',
  session: 'words',
  policyVersion: 'given',
  trustEpoch: 'given',
  by: 'given',
  granted_at: 'given',
  expires_at: 'given',
}
const ids = { call: 'given', permit: 'given' } as const

const ofRecords: Readonly<Partial<Record<RecordType, Given>>> = {
  ...ofFacts,
  'call.intent': { ...target, ...ids },
  'call.outcome': { ...target, ...ofFacts['call.outcome'], ...ids },
  'call.denied': { call: 'given', server: 'given' },
  'approval.standing': standing,
  'approval.revoked': { id: 'given' },
  'approval.ended': { ids: 'given' },
  'permit.revoked': { permit: 'given', server: 'given' },
  'config.applied': { digest: 'given', servers: { server: 'given' } },
  'dynamic.applied': { digest: 'given' },
  'server.registered': registered,
  'server.launched': { server: 'given' },
}

/** The JSON text of a record's body, or of part of it, without the secrets that its words hold. */
export const withoutSecrets = (
  type: RecordType,
  body: Readonly<Record<string, unknown>>,
  redactor: Redactor,
): Redaction => written(body, ofRecords[type] ?? {}, redactor)

function written(body: Body, given: Given, redactor: Redactor): Redaction {
  const parts: string[] = []
  let words: string[] = []
  let hits = 0
  const endWords = (): void => {
    if (words.length === 0) return
    const kept = redactor.redact(`{${words.join()}}`)
    parts.push(kept.text.slice(1, -1))
    hits += kept.hits
    words = []
  }
  for (const [name, value] of Object.entries(body)) {
    const how = Object.hasOwn(given, name) ? given[name] : 'words'
    const text = JSON.stringify(value)
    if (text === undefined) continue // says nothing, as in any JSON
    if (how === 'given') {
      endWords()
      parts.push(`${JSON.stringify(name)}:${text}`)
    } else if (typeof how === 'object' && Array.isArray(value)) {
      endWords()
      const each = value.map((one) => written(one as Body, how, redactor))
      parts.push(`${JSON.stringify(name)}:[${each.map((one) => one.text).join()}]`)
      hits += each.reduce((sum, one) => sum + one.hits, 0)
    } else words.push(`${JSON.stringify(name)}:${text}`)
  }
  endWords()
  return { text: `{${parts.join()}}`, hits }
}
