// What followers of the journal are told: each record that they asked for once, in order, however slowly they read.
import { setTimeout as delay } from 'node:timers/promises'
import { catalogue, SallyportError } from '../errors.ts'
import { lacking, lookFailed } from '../journal/failures.ts'
import type { Journal } from '../journal/journal.ts'
import { type Found, oldestKept, queryJournal, recordOf } from '../journal/read.ts'
import type { JournalRecord } from '../journal/record.ts'
import { listSegments } from '../journal/segments.ts'
import { RawJson } from '../lib/raw-json.ts'
import type { Notifier } from '../rpc/answering.ts'
import { notificationLine } from '../rpc/framing.ts'
import type { InTurn } from './turns.ts'

type Matches = (record: JournalRecord) => boolean

/** What one of them asked for. */
export interface Following {
  /** Number of the last record before it */
  readonly after: number
  /** Null for all */
  readonly matches: Matches | null
}

/** Most of the journal that a follower holds, bytes: it may not read on for as long as it likes. Laid out, it is less than twice as long */
const pageBytes = 131_072
const pageRecords = 1000
/** How long news are gathered before they are told */
const gatherMs = 5
/** When it is looked for again what is not where it was written */
const againMs = 250
/** How often, until that is said: segments may be put back one by one, and disks mended */
const mostAgain = 20

/** Records behind another, for all followers that are up to the same. */
interface Page {
  readonly after: number
  readonly texts: readonly string[]
  /** All of them as they are told, and as they are looked at: for the first who needs it */
  all: Buffer | null
  records: readonly (JournalRecord | null)[] | null
}

/** What a look into the files came to. */
interface Looked extends Pick<Found, 'records'> {
  /** Number of the last record that was looked at */
  readonly reached: number
  /** Whether the folder has no segments at present */
  readonly isAway: boolean
  /** Why nothing could be read, or null */
  readonly failure: SallyportError | null
}

export interface FeedPorts {
  readonly journal: Pick<Journal, 'newest' | 'head' | 'moved'>
  /** Number of the last record that was let go of in this life of the daemon, by a record of its own */
  readonly letGo: number
}

/** Feeds the followers of one journal. Who is up with it is fed from memory, who is not from the files. */
export class JournalFeed {
  readonly #ports: FeedPorts
  readonly #directory: string
  readonly #inTurn: InTurn
  #page: Page | null = null
  #gathering: Promise<void> | null = null

  /** What the ports say is asked anew each time; `inTurn` are the turns of all who look into the files. */
  constructor(ports: FeedPorts, directory: string, inTurn: InTurn) {
    this.#ports = ports
    this.#directory = directory
    this.#inTurn = inTurn
  }

  /**
   * Tells one of them of records as they come, a page in one write, until the stream's signal. Throws ERR_JOURNAL_CORRUPT
   * where the folder has its segments, and still not the record that is next, or says why that still can't be read.
   */
  async tell({ after: begin, matches }: Following, stream: Notifier): Promise<void> {
    const { journal } = this.#ports
    using _ = journal.newest.follow()
    let [after, lookedAgain] = [begin, 0]
    while (!stream.signal.aborted) {
      const { seq } = journal.head
      if (seq <= after) {
        await journal.moved(stream)
        await this.#gathered()
        continue
      }
      const page = this.#pageBehind(after)
      if (page === null) {
        const { records, reached, isAway, failure } = await this.#look({ after, matches }, seq, stream)
        await pass(stream, laidOut(records.map((record) => JSON.stringify(record))))
        // What is on record and not to be found may be somewhere else at present: it is waited for, and never passed over.
        if (reached > after) lookedAgain = 0
        else if (isAway || lookedAgain++ < mostAgain)
          await delay(againMs, undefined, stream).catch(() => undefined)
        else throw failure ?? lacking(this.#directory, after + 1)
        after = reached
      } else {
        await pass(stream, matches === null ? allOf(page) : someOf(page, matches))
        after += page.texts.length
      }
    }
  }

  /** Resolves a little later, for all at once: a write for each record would cost more than the call that it tells of. */
  #gathered(): Promise<void> {
    this.#gathering ??= new Promise((resolve) => {
      setTimeout(() => {
        this.#gathering = null
        resolve()
      }, gatherMs).unref()
    })
    return this.#gathering
  }

  #pageBehind(after: number): Page | null {
    if (this.#page?.after === after) return this.#page
    const lines = this.#ports.journal.newest.behind(after, pageBytes)
    if (lines === null) return null
    this.#page = { after, texts: lines.map(({ text }) => text), all: null, records: null }
    return this.#page
  }

  /** What `#find` finds; nothing, and why, where it can't be read at present. */
  async #look(following: Following, upTo: number, stream: Notifier): Promise<Looked> {
    try {
      const found = await this.#inTurn(() => this.#find(following, upTo, stream))
      const isAway = found.reached === following.after && listSegments(this.#directory).length === 0
      return { ...found, isAway, failure: null }
    } catch (error) {
      const failure = SallyportError.from(lookFailed(this.#directory, error))
      if (!catalogue[failure.code].retryable) throw error
      return { records: [], reached: following.after, isAway: false, failure }
    }
  }

  /** `reached` is the record up to which all that match were found; what `keep_days` let go of is no gap. */
  async #find(
    { after, matches }: Following,
    upTo: number,
    { signal }: Notifier,
  ): Promise<Pick<Looked, 'records' | 'reached'>> {
    signal.throwIfAborted()
    let seen = after
    let isWhole = true
    const oldest = await oldestKept(this.#directory)
    const begins = oldest !== null && oldest <= this.#ports.letGo + 1 ? oldest : null
    const { records, isCut } = await queryJournal(this.#directory, {
      after,
      before: upTo + 1,
      limit: pageRecords,
      limitBytes: pageBytes,
      from: 'oldest',
      matches(record) {
        signal.throwIfAborted()
        isWhole &&= record.seq === seen + 1 || record.seq === begins
        if (!isWhole) return false
        seen = record.seq
        return matches?.(record) ?? true
      },
    })
    const isPage = isCut || records.length === pageRecords
    return { records, reached: isPage ? (records.at(-1)?.seq ?? seen) : seen }
  }
}

const allOf = (page: Page): Buffer => (page.all ??= laidOut(page.texts.map(paramsOf)))

function someOf(page: Page, matches: Matches): Buffer {
  page.records ??= page.texts.map(recordOf)
  const { texts, records } = page
  const isAsked = (_text: string, n: number): boolean => {
    const record = records[n] ?? null
    return record !== null && matches(record)
  }
  return laidOut(texts.filter(isAsked).map(paramsOf))
}

/** What `recordOf` makes of a line: all records of a batch but its last say that they carry no seal. */
const paramsOf = (line: string): string =>
  line.endsWith('}}') ? `${line.slice(0, -1)},"prev":null,"hash":null,"mac":null}` : line

const laidOut = (records: readonly string[]): Buffer =>
  Buffer.from(records.map((record) => notificationLine('audit/record', new RawJson(record))).join(''))

/** Nothing is written where nothing was asked for. */
const pass = async (stream: Notifier, lines: Buffer): Promise<void> =>
  lines.length > 0 ? stream.pass(lines) : undefined
