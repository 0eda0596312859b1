// The journal as operators ask for it: records that match, records as they come, and whether it is what was written.
import type { Place } from '../../config/origin.ts'
import { expectType, isAsked } from '../../journal/asked.ts'
import { lookFailed, unaskable } from '../../journal/failures.ts'
import { type Found, queryJournal } from '../../journal/read.ts'
import type { JournalRecord } from '../../journal/record.ts'
import { listSegments } from '../../journal/segments.ts'
import { lackingBeside } from '../../journal/sidecars.ts'
import { verifyApart } from '../../journal/verify-apart.ts'
import { late } from '../../lib/late.ts'
import type { AuditQuery as Query } from '../../rpc/governed.ts'
import type { Policy } from '../../supervisor/ports.ts'
import { explainCall } from './explain-call.ts'
import type { Governance } from '../governance/governance.ts'
import { JournalFeed } from '../journal-feed.ts'
import { turns } from '../turns.ts'
import type { MethodCall, MethodTable } from './methods.ts'
import { policyVersionOf } from '../governance/policy.ts'

const origins = late(() => import('../../config/origin.ts'))

type Methods = 'audit/query' | 'audit/verify' | 'calls/explain'

type Waiting = Pick<MethodCall, 'signal'>

export interface AuditPorts {
  readonly governance: Governance
  /** The journal's folder */
  readonly directory: string
  readonly key: Uint8Array
  readonly policy: Pick<Policy, 'settings'>
}

const usualLimit = 100
/** Most records of a call that it is explained by */
const mostOfCall = 1000
/** Most of the journal in one answer: a client's longest line has room for it */
const answerBytes = 8 * 1024 * 1024
/** Looks into the files at once, for an answer or for who follows: an answer takes several times its length until it is written */
const mostLooks = 4
/** Verifications at once: each takes a thread, and room for the longest segment */
const mostVerified = 1

/** The methods of operator.sock about the journal; they only read. */
export function auditMethods({ governance, directory, key, policy }: AuditPorts): MethodTable<Methods> {
  const find = async (query: Query, limitBytes: number, { signal }: Waiting): Promise<Found> => {
    const { after = 0, before = null, limit = usualLimit, from = 'newest', seq } = query
    // What is being synced is in the file, and may be taken back.
    const end = governance.journal.head.seq + 1
    const until = { after, before: Math.min(before ?? end, end) }
    const range = seq === undefined ? until : { after: seq - 1, before: Math.min(seq + 1, end) }
    const matches = (record: JournalRecord): boolean => {
      signal.throwIfAborted()
      return isAsked(record, query)
    }
    const found = await queryJournal(directory, { ...range, limit, limitBytes, from, matches })
    // A folder that is away is no journal in which nothing matches.
    if (found.records.length === 0 && listSegments(directory).length === 0)
      throw unaskable(directory, 'ENOENT')
    // A daemon of another version may have written what this one has no word for.
    if (found.records.length === 0) expectType(query.type)
    return found
  }
  const inTurn = turns(mostLooks)
  const verifyInTurn = turns(mostVerified)
  const feed = new JournalFeed(governance, directory, inTurn)
  const sayWhy = (error: unknown): never => {
    throw lookFailed(directory, error)
  }
  const findInTurn = (query: Query, waiting: Waiting): Promise<Found> =>
    inTurn(() => find(query, answerBytes, waiting)).catch(sayWhy)
  return {
    async 'audit/query'(query, call) {
      await governance.governors.settled()
      const { head } = governance.journal
      // What comes while the answer waits for its turn is told to who follows, and so no part of it.
      const before = Math.min(query.before ?? Infinity, head.seq + 1)
      const { records, isCut } = await findInTurn({ ...query, before }, call)
      if (query.follow === true) {
        const matches = asksForAll(query) ? null : (record: JournalRecord) => isAsked(record, query)
        const after = behindAnswer(query, records, isCut) ?? head.seq
        call.afterReply((stream) => feed.tell({ after, matches }, stream))
      }
      const isLookedAt = query.seq !== undefined || query.call !== undefined
      return { records, more: isCut, head, lacking: isLookedAt ? lackingBeside(directory, records) : [] }
    },
    async 'calls/explain'({ call_id: call }, waiting) {
      await governance.governors.settled()
      const { records } = await findInTurn({ call, limit: mostOfCall }, waiting)
      const explained = explainCall(call, records, (server) => policyVersionOf(policy.settings, server))
      const { rule, policy: by } = explained
      // Of a file that cannot be read any more, or was decided by before, no line is known.
      const isKnown = rule !== null && by.is_present
      const place = isKnown ? await placeOf(rule, policy.settings).catch(() => null) : null
      return { ...explained, place }
    },
    async 'audit/verify'({ anchor = null }, { signal }) {
      await governance.governors.settled()
      return verifyInTurn(async () => {
        const known = { anchor, head: governance.journal.head }
        return verifyApart({ directory, key, known }, { signal })
      }).catch(sayWhy)
    },
  }
}

async function placeOf(rule: string, settings: Policy['settings']): Promise<Place | null> {
  const { placeOfOrigin } = await origins()
  return placeOfOrigin(rule, settings)
}

/** Number of the last record of an answer that is followed from there on, since others come between it and the head; else null. */
function behindAnswer(
  { from, before, limit = usualLimit }: Query,
  records: readonly JournalRecord[],
  isCut: boolean,
): number | null {
  const isPart = from === 'oldest' && before === undefined && (isCut || records.length === limit)
  return isPart ? (records.at(-1)?.seq ?? null) : null
}

const asksForAll = ({ type, server, call, seq }: Query): boolean =>
  [type, server, call, seq].every((asked) => asked === undefined)
