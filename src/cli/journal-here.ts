// A journal as it lies in a state folder: for whoever reads or verifies it where no daemon has it open, or none starts on it.
import { constants, existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { thisHost } from '../config/host.ts'
import { onNamed } from '../config/named-file.ts'
import { stateDirectory } from '../config/paths.ts'
import { SallyportError } from '../errors.ts'
import { unverifiable } from '../journal/failures.ts'
import { headPath } from '../journal/head-file.ts'
import { isTooLong } from '../journal/segments.ts'
import { verifyJournal } from '../journal/verify.ts'
import { isMissing } from '../lib/missing.ts'
import type { AuditAnchor, AuditVerification } from '../rpc/governed.ts'

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
function verified(journal: string, key: Uint8Array | null, kept: AuditAnchor | null): AuditVerification {
  try {
    return verifyJournal(journal, key, { anchor: kept })
  } catch (error) {
    throw isTooLong(error) ? unverifiable(error) : error
  }
}

/** Null where there is none. What is no plain file, which may never be read to its end, is an error. */
async function keyAt(path: string): Promise<Buffer | null> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    if (!(await file.stat()).isFile()) throw new Error(`${path} is no plain file`)
    return await file.readFile()
  } catch (error) {
    if (!isMissing(error)) throw error
    return null
  }
}

/** What is judged by: an anchor that was exported, and whether its key is to be there. */
interface Judging {
  readonly anchor?: AuditAnchor | undefined
  readonly key: boolean
}

/** Whether the journal that lies there is what was written, and its key and head file are there. Throws where there is none. */
export async function judgedHere({ journal, keyPath, look }: Here, by: Judging): Promise<AuditVerification> {
  const found = await look(async () => {
    const key = by.key ? await keyAt(keyPath) : null
    const read = verified(journal, key, by.anchor ?? null)
    if (!by.key || read.records === 0 || !read.ok) return read
    if (key === null) return { ...read, ok: false, flaw: keyLost(keyPath) }
    const head = headPath(journal)
    const showsEnd = by.anchor !== undefined || existsSync(head)
    return showsEnd ? read : { ...read, ok: false, flaw: headLost(head) }
  })
  expectJournal(journal, found)
  return found
}

/** Throws where there is nothing. Where all of it was taken away, the head file beside it knows. */
function expectJournal(journal: string, { segments, flaw }: AuditVerification): void {
  if (segments > 0 || flaw !== null) return
  throw new SallyportError(
    'ERR_RECORD_NOT_FOUND',
    `${journal} holds no journal; name the state folder with --state, and the folder of a run in its runs with --run`,
  )
}

/** It is there before the first record is: a journal without it is a copy, or has lost it. */
const headLost = (path: string) => ({
  path,
  line: 0,
  kind: 'head',
  detail:
    'it is missing, so an end that was cut off could not be seen; restore it, or name an anchor that was exported with --anchor',
})

/** Without its key a journal can be written anew from its first record on, and every hash of it is right. */
const keyLost = (path: string) => ({
  path,
  line: 0,
  kind: 'key',
  detail: 'it is missing, so no MAC was checked; restore it, or verify a copy that has none with --no-key',
})

function runId(text: string): string {
  if (/^d-[\w-]+$/.test(text)) return text
  throw new SallyportError('ERR_USAGE', `--run: got ${text}, expected the id of a run, as d-4WKQbscqpZf2`)
}
