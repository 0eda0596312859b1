// What a query of the journal asks for, where one answer has no room for all of it.
import { SallyportError } from '../errors.ts'
import type { AuditPage, AuditQuery } from '../rpc/governed.ts'

/** Most records where a query names no limit, as the daemon has it */
const usualLimit = 100

/**
 * All that a query asks for, oldest first, given its first answer and who asks for more. Throws ERR_DAEMON_PROTOCOL where an
 * answer brings what was had before: it would go on for ever.
 */
export async function allPages(
  first: AuditPage,
  query: AuditQuery,
  ask: (query: AuditQuery) => Promise<AuditPage>,
): Promise<AuditPage> {
  const { limit = usualLimit, from } = query
  const isForward = from === 'oldest'
  let { records, more, lacking } = first
  while (more && records.length < limit) {
    const edge = (isForward ? records.at(-1) : records[0])?.seq
    if (edge === undefined) break
    const bound = isForward ? { after: edge } : { before: edge }
    const page = await ask({ ...query, ...bound, limit: limit - records.length, follow: false })
    const isNew = page.records.every(({ seq }) => (isForward ? seq > edge : seq < edge))
    if (!isNew) throw repeated(bound)
    records = isForward ? [...records, ...page.records] : [...page.records, ...records]
    lacking = isForward ? [...lacking, ...page.lacking] : [...page.lacking, ...lacking]
    more = page.more && page.records.length > 0
  }
  return { records, more: false, head: first.head, lacking }
}

const repeated = (bound: object): SallyportError =>
  new SallyportError(
    'ERR_DAEMON_PROTOCOL',
    `audit/query: the daemon was asked for records with ${JSON.stringify(bound)} and answers with others; use the sallyport of the daemon's version`,
  )
