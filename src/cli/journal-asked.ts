// Who answers what is asked of a journal: the daemon that has it open, or the files in a state folder.
import { expectType, isAsked } from '../journal/asked.ts'
import { lookFailed } from '../journal/failures.ts'
import { queryJournal } from '../journal/read.ts'
import { lackingBeside } from '../journal/sidecars.ts'
import type { AuditAnchor, AuditPage, AuditQuery, AuditVerification } from '../rpc/governed.ts'
import { here, type HereOptions, isHere, judgedHere } from './journal-here.ts'
import { hint } from './output.ts'
import { reach } from './reach.ts'
import type { ReachOptions } from './reach.ts'

/** Who answers queries: the daemon that runs, or the files of a journal. */
export interface Asking {
  readonly ask: (query: AuditQuery) => Promise<AuditPage>
  readonly signal: AbortSignal
}

/** Asks the daemon, or reads the files where they are named; those are verified first, and what is wrong with them is told. */
export async function asking(
  options: HereOptions & ReachOptions,
  act: (asking: Asking) => Promise<void>,
): Promise<void> {
  if (isHere(options)) return act({ ask: await askHere(options), signal: new AbortController().signal })
  await reach(options, 'operator', ({ client, signal }) =>
    act({ ask: (query) => client.call('audit/query', query, { signal }), signal }),
  )
}

/** Most of the journal in one answer, as the daemon has it */
const answerBytes = 8 * 1024 * 1024

async function askHere(options: HereOptions): Promise<Asking['ask']> {
  const place = await here(options, 'read')
  const { journal, look } = place
  const found = await judgedHere(place, { key: true })
  if (found.flaw !== null) tellFlaw(found.flaw)
  const find = (query: AuditQuery): Promise<Pick<AuditPage, 'records' | 'more'>> => {
    const { seq, after = (seq ?? 1) - 1, before = seq === undefined ? null : seq + 1 } = query
    const { limit = 100, from = 'newest' } = query
    const matches = (record: Parameters<typeof isAsked>[0]): boolean => isAsked(record, query)
    return look(async () => {
      const asked = { after, before, limit, from, limitBytes: answerBytes, matches }
      const { records, isCut } = await queryJournal(journal, asked).catch((error: unknown) => {
        throw lookFailed(journal, error)
      })
      return { records, more: isCut }
    })
  }
  const { records: ends } = await find({ limit: 1 })
  const head = endOf(ends) ?? found.head
  return async (query) => {
    const { records, more } = await find(query)
    if (records.length === 0) expectType(query.type)
    const isLookedAt = query.seq !== undefined || query.call !== undefined
    return { records, more, head, lacking: isLookedAt ? lackingBeside(journal, records) : [] }
  }
}

/** The last record that is sealed, whatever stands before it. */
function endOf([last]: AuditPage['records']): AuditAnchor | null {
  return last === undefined || last.hash === null ? null : { seq: last.seq, hash: last.hash }
}

/** Without key or head file it may be what was written, and nobody can tell. */
function tellFlaw({ path, line, kind, detail }: NonNullable<AuditVerification['flaw']>): void {
  if (kind === 'key' || kind === 'head') return hint(`${path}: ${detail}`)
  process.exitCode = 4
  hint(
    `the journal is NOT what was written from ${path}:${line} on: ${kind}: ${detail}; it is shown as it stands, and nothing from there on is to go by`,
  )
}
