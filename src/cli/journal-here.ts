// A journal as it lies in a state folder: for whoever reads or verifies it where no daemon has it open, or none starts on it.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { thisHost } from '../config/host.ts'
import { onNamed } from '../config/named-file.ts'
import { stateDirectory } from '../config/paths.ts'
import { SallyportError } from '../errors.ts'
import { isAsked } from '../journal/asked.ts'
import { lookFailed, unverifiable } from '../journal/failures.ts'
import { queryJournal } from '../journal/read.ts'
import { isTooLong } from '../journal/segments.ts'
import { lackingBeside } from '../journal/sidecars.ts'
import { verifyJournal } from '../journal/verify.ts'
import { isMissing } from '../lib/missing.ts'
import type { AuditAnchor, AuditPage, AuditQuery, AuditVerification } from '../rpc/governed.ts'
import { hint } from './output.ts'
import { reach } from './reach.ts'
import type { ReachOptions } from './reach.ts'

/** Which journal is looked at without a daemon; where both are left out, the daemon is asked. */
export interface HereOptions {
  readonly state?: string
  readonly run?: string
}

/** Adds `--state` and `--run`; `does` is what the command does to a journal. */
export function offline(command: Command, does: 'read' | 'verify'): Command {
  return command
    .option('--state <folder>', `${does} this state folder, without a daemon`)
    .option(
      '--run <id>',
      `${does} the journal of one sallyport run, a folder of runs in the state folder`,
      runId,
    )
}

export const isHere = ({ state, run }: HereOptions): boolean => state !== undefined || run !== undefined

export const elsewhere = 'a state folder that this user may read is named with --state'

/** Where a journal lies, and its key. */
export interface Here {
  readonly journal: string
  readonly keyPath: string
  /** What is done with its files; where this user may not read them, that is what it fails with */
  readonly look: <T>(work: () => Promise<T>) => Promise<T>
}

export async function here({ state, run }: HereOptions, does: 'read' | 'verify'): Promise<Here> {
  const folder = await stateDirectory(state, thisHost())
  const mend = `${does} it as the user whose daemon wrote it, or as root; ${elsewhere}`
  const named = { path: folder, access: 'read', code: 'ERR_NOT_AUTHORISED', mend } as const
  return {
    journal: join(folder, run === undefined ? 'journal' : join('runs', run)),
    keyPath: join(folder, 'journal.key'),
    look: (work) => onNamed(named, work),
  }
}

/** As `verifyJournal`; of what is too long to be read it says that. */
export function verified(
  journal: string,
  key: Uint8Array | null,
  kept: AuditAnchor | null,
): AuditVerification {
  try {
    return verifyJournal(journal, key, { anchor: kept })
  } catch (error) {
    throw isTooLong(error) ? unverifiable(error) : error
  }
}

/** Null where there is none. */
export async function keyAt(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path)
  } catch (error) {
    if (!isMissing(error)) throw error
    return null
  }
}

/** Throws where there is nothing. Where all of it was taken away, the head file beside it knows. */
export function expectJournal(journal: string, { segments, flaw }: AuditVerification): void {
  if (segments > 0 || flaw !== null) return
  throw new SallyportError(
    'ERR_RECORD_NOT_FOUND',
    `${journal} holds no journal; name the state folder with --state, and the folder of a run in its runs with --run`,
  )
}

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
  const { journal, keyPath, look } = await here(options, 'read')
  const found = await look(async () => verified(journal, await keyAt(keyPath), null))
  expectJournal(journal, found)
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
    const isLookedAt = query.seq !== undefined || query.call !== undefined
    return { records, more, head, lacking: isLookedAt ? lackingBeside(journal, records) : [] }
  }
}

/** The last record that is sealed, whatever stands before it. */
function endOf([last]: AuditPage['records']): AuditAnchor | null {
  return last === undefined || last.hash === null ? null : { seq: last.seq, hash: last.hash }
}

const tellFlaw = ({ path, line, kind, detail }: NonNullable<AuditVerification['flaw']>): void =>
  hint(
    `the journal is NOT what was written from ${path}:${line} on: ${kind}: ${detail}; it is shown as it stands, and nothing from there on is to go by`,
  )

function runId(text: string): string {
  if (/^d-[\w-]+$/.test(text)) return text
  throw new SallyportError('ERR_USAGE', `--run: got ${text}, expected the id of a run, as d-4WKQbscqpZf2`)
}
