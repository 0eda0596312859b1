// Evidence on its way into the journal: what was said is kept as it was said, and what is too long lies beside it, by digest.
import { hash } from 'node:crypto'
import { join } from 'node:path'
import type { Ended, Intent, Raw, Recorder, Told } from '../../call/ports.ts'
import type { Confided } from '../../credentials/confided.ts'
import { SallyportError } from '../../errors.ts'
import { isLong, ownTurn } from '../../lib/long-text.ts'
import { toTheMicrosecond } from '../../lib/milliseconds.ts'
import { onePiece } from '../../lib/one-piece.ts'
import { errnoOf } from '../../lib/missing.ts'
import { parseJson } from '../../lib/parse-json.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Pending, Place, PlaceInTime } from '../../journal/pending.ts'
import { throughDescriptor } from '../../journal/segments.ts'
import { type Sidecar, sidecarPath } from '../../journal/sidecars.ts'
import type { RecordType } from '../../schema/record-type.ts'
import type { Redaction, Redactor } from '../../schema/redactor.ts'
import { behind } from '../redactor.ts'
import { keepIn } from './evidence-file.ts'
import { withoutSecrets } from './verbatim.ts'

export interface RecorderOptions {
  readonly journal: Pick<Journal, 'add' | 'folder' | 'changedMs'>
  /** The journal's folder; long evidence goes to `evidence/` in it */
  readonly directory: string
  /** Longest request or response that a record holds whole, bytes */
  readonly evidenceBytes: number
  readonly isSynced: boolean
  /** Takes out of a record, and of what lies beside it, what must not be kept */
  readonly redactor: Redactor
  /** What persons told servers, which is taken out of what those say */
  readonly confided: Pick<Confided, 'of'>
  /** Whether the kernel keeps hosts from the daemon; stands in every record */
  readonly separation: 'full' | 'none'
  /** Told of each record once it is durable, in the order of the journal, before whoever recorded it */
  readonly folded: (record: Durable) => void
}

/**
 * A record that is durable, as it was given or, where something was taken out of it, as it was written. Of a call's own
 * records no more than folds go by.
 */
export interface Durable extends Place {
  readonly type: string
  readonly body: unknown
  /** When it had become so, ms since 1970; of one that was read back its own time tells */
  readonly atMs?: number
}

/** A record that is being put together. */
interface Draft {
  readonly type: RecordType
  /** What folds are told that it says */
  readonly said: unknown
  readonly told: Pick<Pending, 'durable' | 'failed'>
}

/** Writes records; a file beside the journal is durable before the record that names it. To be disposed of before the journal. */
export class JournalRecorder implements Recorder, AsyncDisposable {
  readonly #options: RecorderOptions
  /** How the body of every record begins, and that of a call's own */
  readonly #opening: string
  readonly #openingOfCall: string
  readonly #parts = new WeakMap<object, Redaction>()
  /** What is not with the journal yet, since its evidence is long */
  readonly #underWay = new Set<Promise<void>>()
  #isClosing = false

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#opening = onePiece(`{"separation":"${options.separation}"`)
    this.#openingOfCall = onePiece(`${this.#opening},"call":"`)
  }

  /** Resolves once the record is durable and folded; `redacted` in it counts the secrets that were taken out. */
  record(type: RecordType, body: Readonly<Record<string, unknown>>, raw: Raw = {}): Promise<Place> {
    const { text, hits } = withoutSecrets(type, body, this.#options.redactor)
    const said: unknown = hits === 0 ? body : parseJson(text)
    const [name = '', whole = null] = Object.entries(raw)[0] ?? []
    return new Promise((durable, failed) => {
      const told = { durable, failed }
      this.#add({ type, said, told }, { text: this.#opening + membersOf(text), hits }, `,"${name}":`, whole)
    })
  }

  /** Resolves when the journal has all that was recorded so far; what is long is refused from then on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true
    await Promise.all(this.#underWay)
  }

  /**
   * What many calls have in common is written out, and searched for secrets, once. Ids of calls and permits, and
   * digests, are made in this life of the daemon, of letters that need no escape. Of pieces that a text is put together of
   * each costs as much as some hundred characters.
   */
  intent(intent: Intent, told: Told): void {
    const { call, permit, approval, argumentsDigest, bytesDigest, lineage, id, foreseen } = intent
    const { about, request } = intent
    const [of, also] = [
      this.#common('call.intent', about, () => ({ ...about.target, ...about.basis })),
      this.#members(foreseen),
    ]
    const from = lineage === null ? noLineage : this.#words('lineage', lineage)
    const as = id === null ? nothing : this.#words('request_id', id)
    const rest = of.text + from.text + as.text + also.text
    const text = `${this.#openingOfCall}${call}","permit":"${permit}${behindPermit(approval)}${argumentsDigest}","bytes_digest":"${bytesDigest}"${rest}`
    const hits = of.hits + from.hits + as.hits + also.hits
    const { server, kind, subject, identity, principal, peer, trust_epoch } = about.target
    const said: unknown =
      hits === 0
        ? { call, server, kind, subject, identity, principal, peer, permit, trust_epoch }
        : bodyOf(text)
    this.#add({ type: 'call.intent', said, told }, { text, hits }, ',"request":', request)
  }

  /** As `intent`. */
  outcome({ admission, outcome, offSchema, used }: Ended, told: Told): void {
    const { call, permit, intent, target, server, kind, subject, identity, principal, trustEpoch } = admission
    const again = admission.repeats ? { repeats: true } : null
    const { detail } = outcome
    const redactor = behind(this.#options.confided.of(server, principal), this.#options.redactor)
    const why = detail === null ? noDetail : this.#words('detail', detail, redactor)
    const off = offSchema === undefined ? nothing : this.#words('off_schema', offSchema, redactor)
    const [of, also] = [this.#common('call.outcome', target, () => ({ ...target })), this.#members(used)]
    const rest = of.text + why.text + off.text + also.text
    const text = `${this.#openingOfCall}${call}","intent":${intent},"permit":"${permit}${endedBy(outcome.kind)}${toTheMicrosecond(outcome.durationMs)}${again === null ? '' : ',"repeats":true'}${rest}`
    const hits = of.hits + why.hits + off.hits + also.hits
    const said: unknown =
      hits === 0 && off === nothing
        ? { call, server, kind, subject, identity, outcome: outcome.kind, trust_epoch: trustEpoch, ...again }
        : bodyOf(text)
    this.#add({ type: 'call.outcome', said, told }, { text, hits }, ',"response":', outcome.bytes, redactor)
  }

  /** Members that many records share, for as long as the object lives that stands for them. */
  #common(
    type: 'call.intent' | 'call.outcome',
    part: object,
    whole: () => Readonly<Record<string, unknown>>,
  ): Redaction {
    let written = this.#parts.get(part)
    if (written === undefined) {
      const { text, hits } = withoutSecrets(type, whole(), this.#options.redactor)
      written = { text: onePiece(membersOf(text)), hits }
      this.#parts.set(part, written)
    }
    return written
  }

  #members(part: object | null): Redaction {
    if (part === null) return nothing
    const { text, hits } = this.#options.redactor.redact(JSON.stringify(part))
    return { text: membersOf(text), hits }
  }

  #words(name: string, words: string, redactor = this.#options.redactor): Redaction {
    const { text, hits } = redactor.redact(JSON.stringify(words))
    return { text: `,"${name}":${text}`, hits }
  }

  /** `body` is without its last brace; `raw` comes behind `name`, or beside it. */
  #add(
    draft: Draft,
    body: Redaction,
    name: string,
    raw: string | null,
    redactor = this.#options.redactor,
  ): void {
    if (raw === null) return this.#append(draft, withHits(body.text, body.hits))
    const kept = isLong(raw) ? null : redactor.redact(raw)
    if (kept !== null && this.#fits(kept.text)) return this.#addWhole(draft, body, name, kept)
    if (this.#isClosing) return queueMicrotask(() => draft.told.failed(stopping()))
    const added = this.#addLate(draft, body, name, kept ?? redactedLong(raw, redactor))
    this.#underWay.add(added)
    void added.then(() => this.#underWay.delete(added))
  }

  #addWhole(draft: Draft, { text, hits }: Redaction, name: string, kept: Redaction): void {
    this.#append(draft, withHits(`${text}${name}${JSON.stringify(kept.text)}`, hits + kept.hits))
  }

  /** Never rejects. */
  async #addLate(
    draft: Draft,
    body: Redaction,
    name: string,
    redaction: Redaction | Promise<Redaction>,
  ): Promise<void> {
    try {
      const kept = await redaction
      if (this.#fits(kept.text)) return this.#addWhole(draft, body, name, kept)
      const sidecar = await this.#keep(kept.text)
      this.#append(draft, `${withHits(body.text, body.hits + kept.hits)}${name}${JSON.stringify(sidecar)}`)
    } catch (error) {
      draft.told.failed(SallyportError.from(error))
    }
  }

  #append(draft: Draft, body: string): void {
    const { journal, folded } = this.#options
    journal.add(new Line(draft, `${body}}`, folded))
  }

  #fits(text: string): boolean {
    const { evidenceBytes } = this.#options
    if (text.length > evidenceBytes) return false
    return text.length * 3 <= evidenceBytes || Buffer.byteLength(text) <= evidenceBytes
  }

  /** Writes the evidence under its digest, whole or not at all; what is there already is the same. */
  async #keep(text: string): Promise<Sidecar> {
    const { journal, directory, isSynced } = this.#options
    const bytes = Buffer.from(text)
    const sha256 = hash('sha256', bytes)
    try {
      await using opened = await journal.folder()
      const folder = join(throughDescriptor(opened), 'evidence')
      await keepIn(folder, sha256, bytes, { isSynced, notBefore: journal.changedMs })
    } catch (error) {
      const path = join(directory, 'evidence')
      const why = errnoOf(error) ?? SallyportError.from(error).message
      throw new SallyportError(
        'ERR_JOURNAL',
        `evidence of ${bytes.length} bytes cannot be kept in ${path} (${why}), so nothing is called; mend the disk, calls resume by themselves`,
        { path },
        { cause: error },
      )
    }
    return { sha256, bytes: bytes.length, path: sidecarPath(sha256) }
  }
}

const stopping = (): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL',
    'Sallyport is stopping, and keeps no long evidence any more, so nothing is called; call again when it runs',
  )

/** A record on its way into the journal. */
class Line implements Pending {
  readonly type: string
  readonly body: string
  readonly #draft: Draft
  readonly #folded: RecorderOptions['folded']

  constructor(draft: Draft, body: string, folded: RecorderOptions['folded']) {
    this.type = draft.type
    this.body = body
    this.#draft = draft
    this.#folded = folded
  }

  folded({ seq, atMs }: PlaceInTime): void {
    this.#folded({ type: this.type, body: this.#draft.said, seq, atMs })
  }

  durable(place: Place): void {
    this.#draft.told.durable(place)
  }

  failed(error: SallyportError): void {
    this.#draft.told.failed(error)
  }
}

async function redactedLong(raw: string, redactor: Redactor): Promise<Redaction> {
  const kept = await redactor.redactLong(raw)
  await ownTurn()
  return kept
}

const nothing: Redaction = { text: '', hits: 0 }
const noLineage: Redaction = { text: ',"lineage":null', hits: 0 }
const noDetail: Redaction = { text: ',"detail":null', hits: 0 }

const behindPermit = (approval: string | null): string =>
  approval === null
    ? '","approval":null,"arguments_digest":"'
    : `","approval":${JSON.stringify(approval)},"arguments_digest":"`

const endedBy = (kind: string): string =>
  kind === 'result' ? '","outcome":"result","duration_ms":' : `","outcome":"${kind}","duration_ms":`

const bodyOf = (body: string): unknown => parseJson(`${body}}`)

const withHits = (body: string, hits: number): string => (hits === 0 ? body : `${body},"redacted":${hits}`)

/** The members of an object's text, a comma before each. */
const membersOf = (object: string): string => (object === '{}' ? '' : `,${object.slice(1, -1)}`)
