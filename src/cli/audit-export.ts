// `sallyport audit export`: every record as one line, each batch once it was held against its hash, and the anchor to keep.
import { type Command, Option } from 'commander'
import { SallyportError } from '../errors.ts'
import { flawOfBatch, type Position } from '../journal/record.ts'
import { beginning } from '../journal/segments.ts'
import { visibleJsonText } from '../lib/visible-json.ts'
import type { AuditAnchor, AuditRecord } from '../rpc/governed.ts'
import { asking, type Asking } from './journal-asked.ts'
import { type HereOptions, offline } from './journal-here.ts'
import { wholeNumber } from './number.ts'
import { newOut } from './out.ts'
import { hint, printPiece } from './output.ts'
import { reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface ExportOptions extends ReachOptions, HereOptions {
  readonly after: number
  readonly out?: string
}

/** Records that are asked for at once. */
const page = 500

export function registerExport(audit: Command): void {
  offline(reaching(audit.command('export'), { reads: false }), 'read')
    .description('write every record, one JSON object a line, and say the anchor to keep')
    .addOption(new Option('--format <format>', 'ndjson').choices(['ndjson']).default('ndjson'))
    .option('--after <seq>', 'only records behind this number', afterFrom, 0)
    .option('--out <file>', 'into this file instead of stdout; it must not exist')
    .action((options: ExportOptions) =>
      asking(options, async (asked) => {
        const last = await exportAll(asked, options)
        if (last === null) return hint('there is nothing to export')
        hint(
          `anchor ${last.seq}:${last.hash}\nkeep it elsewhere; sallyport audit verify --anchor checks that all of this is still there`,
        )
      }),
    )
}

async function exportAll(
  { ask, signal }: Asking,
  { after, out }: ExportOptions,
): Promise<AuditAnchor | null> {
  await using file = out === undefined ? null : await newOut(out, 0o600, 'name a file that is not there yet')
  const { head } = await ask({ limit: 1 })
  const held = new Held()
  let last: AuditAnchor | null = null
  for (let from = after; from < head.seq;) {
    const query = { after: from, before: head.seq + 1, from: 'oldest', limit: page } as const
    const { records } = await ask(query)
    // It begins with what is left, and says so; behind that, nothing is passed over.
    if (last === null && from === after) from = begunBehind(after, records)
    expectWhole(from, records)
    const text = held.lines(records)
    if (file === null) await printPiece(shown(text), { signal })
    else await file.write(text)
    if (held.flaw !== null) throw held.flaw
    from = records.at(-1)?.seq ?? head.seq
    for (const { seq, hash } of records) if (hash !== null) last = { seq, hash }
  }
  // Whoever takes the end of a batch for none would leave that batch out without a word.
  if (after < head.seq && (last?.seq !== head.seq || last.hash !== head.hash)) throw otherEnd(head.seq)
  await file?.keep()
  return last
}

/** Who keeps what is exported has it byte for byte; on a terminal it is read, and must not act on that. */
const shown = (text: string): string => (process.stdout.isTTY ? visibleJsonText(text) : text)

/** Number of the record before the first that is left behind `after`. */
function begunBehind(after: number, [first]: readonly AuditRecord[]): number {
  if (first === undefined || first.seq === after + 1) return after
  hint(
    `begins with record ${first.seq}: what came before was let go of, or is missing; sallyport audit verify says which`,
  )
  return first.seq - 1
}

/** Throws where the record behind `before`, or one behind that, is not among these. */
function expectWhole(before: number, records: readonly AuditRecord[]): void {
  const gap = records.findIndex(({ seq }, n) => seq !== before + 1 + n)
  const isWhole = gap < 0 && records.length > 0
  if (isWhole) return
  const lacking = before + 1 + Math.max(gap, 0)
  throw new SallyportError(
    'ERR_RECORD_NOT_FOUND',
    `record ${lacking} was written and is not to be found, so nothing behind it is exported: it is missing, or was let go of meanwhile; sallyport audit verify says what the journal is now`,
    { seq: lacking },
  )
}

/** Records until their batch ends: with its hash it says whether they are what was written. */
class Held {
  #batch = ''
  /** Where the batch before it ends; null where that is not known, and what there is of the batch may not be all of it */
  #before: Position | null = null
  /** That one is not what was written: there are no more lines then */
  flaw: SallyportError | null = null

  /** The lines of all batches that end with these records, up to the first that is not what was written. */
  lines(records: readonly AuditRecord[]): string {
    let text = ''
    for (const record of records) {
      const { seq, hash } = record
      if (seq === 1) this.#before = beginning
      this.#batch += `${lineOf(record)}\n`
      if (hash === null) continue
      this.flaw = this.#before === null ? null : flawOf(this.#batch, record, this.#before)
      if (this.flaw !== null) break
      text += this.#batch
      this.#batch = ''
      this.#before = { seq, hash }
    }
    return text
  }
}

function flawOf(batch: string, last: AuditRecord, before: Position): SallyportError | null {
  const flaw = flawOfBatch(Buffer.from(batch).subarray(0, -1), last, before, null)
  const seq = before.seq + 1
  return flaw === null
    ? null
    : new SallyportError(
        'ERR_JOURNAL_CORRUPT',
        `${flaw.detail}: that is not what was written, so nothing from record ${seq} on is exported; sallyport audit verify says what the journal is now, --after ${last.seq} exports what comes behind it`,
        { seq },
      )
}

const otherEnd = (seq: number): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL_CORRUPT',
    `what was read does not end with record ${seq} as the daemon wrote it: the journal was changed, and what was exported is none of it to go by; sallyport audit verify says where`,
    { seq },
  )

/** The record in the form of the journal: what holds a batch stands in the last of it. */
const lineOf = ({ prev, hash, mac, ...record }: AuditRecord): string =>
  JSON.stringify(hash === null ? record : { ...record, prev, hash, mac })

function afterFrom(text: string): number {
  const value = wholeNumber(text)
  if (value !== null) return value
  throw new SallyportError('ERR_USAGE', `--after: got ${JSON.stringify(text)}, expected a whole number`)
}
