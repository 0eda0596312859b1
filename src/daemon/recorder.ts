// Evidence on its way into the journal: what was said is kept as it was said, and what is too long lies beside it, by digest.
import { hash } from 'node:crypto'
import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { CallRecord, Raw, Recorder } from '../call/ports.ts'
import { SallyportError } from '../errors.ts'
import { errnoOf } from '../lib/missing.ts'
import type { Journal } from '../journal/journal.ts'
import type { Position } from '../journal/record.ts'
import type { Redaction, Redactor } from '../schema/redactor.ts'

export interface RecorderOptions {
  readonly journal: Pick<Journal, 'append'>
  /** The journal's folder; long evidence goes to `evidence/` in it */
  readonly directory: string
  /** Longest request or response that a record holds whole, bytes */
  readonly evidenceBytes: number
  readonly isSynced: boolean
  /** Takes out of a record, and of what lies beside it, what must not be kept */
  readonly redactor: Redactor
  /** Whether the kernel keeps hosts from the daemon; stands in every record */
  readonly separation: 'full' | 'none'
  /** Told of each record once it is durable, in the order of the journal, before whoever recorded it */
  readonly folded: (record: Durable) => void
}

/** A record that is durable, as it was given or, where something was taken out of it, as it was written. */
export interface Durable extends Position {
  readonly type: string
  readonly body: unknown
}

/** What a record says of evidence that is not in it. */
interface Sidecar {
  readonly sha256: string
  readonly bytes: number
  /** Relative to the journal's folder */
  readonly path: string
}

/** Writes records; a file beside the journal is durable before the record that names it. */
export class JournalRecorder implements Recorder {
  readonly #options: RecorderOptions
  readonly #opening: string
  readonly #parts = new WeakMap<object, Redaction>()

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#opening = `{"separation":"${options.separation}"`
  }

  /** Resolves once the record is durable and folded; `redacted` in it counts the secrets that were taken out. */
  record(type: string, body: Readonly<Record<string, unknown>>, raw: Raw = {}): Promise<Position> {
    const { text, hits } = this.#options.redactor.redact(JSON.stringify(body))
    const read = hits === 0 ? body : JSON.parse(text)
    return this.#recordWith(type, read, { text: membersOf(text), hits }, raw)
  }

  /** As `record`; what many calls have in common is written out, and searched for secrets, once. */
  recordCall(type: string, { about, own, said, raw }: CallRecord): Promise<Position> {
    let [text, hits] = [membersOf(JSON.stringify(own)), 0]
    for (const part of about) {
      const written = this.#written(part)
      text += written.text
      hits += written.hits
    }
    for (const [name, words] of Object.entries(said)) {
      const kept = words === null ? nothingSaid : this.#options.redactor.redact(JSON.stringify(words))
      text += `,"${name}":${kept.text}`
      hits += kept.hits
    }
    const body: unknown =
      hits === 0 ? Object.assign({}, ...about, own, said) : JSON.parse(`{${text.slice(1)}}`)
    return this.#recordWith(type, body, { text, hits }, raw)
  }

  #written(part: object): Redaction {
    let written = this.#parts.get(part)
    if (written === undefined) {
      const { text, hits } = this.#options.redactor.redact(JSON.stringify(part))
      written = { text: membersOf(text), hits }
      this.#parts.set(part, written)
    }
    return written
  }

  /** `members` is the body's text without its braces, a comma before each member. */
  #recordWith(type: string, body: unknown, members: Redaction, raw: Raw): Promise<Position> {
    let { text, hits } = members
    for (const [name, whole] of Object.entries(raw)) {
      const kept = this.#options.redactor.redact(whole)
      hits += kept.hits
      if (!this.#fits(kept.text)) return this.#recordBeside(type, body, withHits(text, hits), name, kept.text)
      text += `,"${name}":${JSON.stringify(kept.text)}`
    }
    return this.#append(type, body, withHits(text, hits))
  }

  #append(type: string, body: unknown, members: string): Promise<Position> {
    return this.#options.journal.append({ type, body: `${this.#opening}${members}}` }, (position) =>
      this.#options.folded({ type, body, ...position }),
    )
  }

  async #recordBeside(
    type: string,
    body: unknown,
    text: string,
    name: string,
    kept: string,
  ): Promise<Position> {
    const sidecar = await this.#keep(kept)
    return this.#append(type, body, `${text},"${name}":${JSON.stringify(sidecar)}`)
  }

  #fits(text: string): boolean {
    const { evidenceBytes } = this.#options
    return text.length * 3 <= evidenceBytes || Buffer.byteLength(text) <= evidenceBytes
  }

  /** Writes the evidence under its digest, whole or not at all; what is there already is the same. */
  async #keep(text: string): Promise<Sidecar> {
    const { directory, isSynced } = this.#options
    const bytes = Buffer.from(text)
    const sha256 = hash('sha256', bytes)
    const folder = join(directory, 'evidence')
    const draft = join(folder, `.${sha256}.${process.pid}.${performance.now()}`)
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await using file = await open(draft, 'wx', 0o600)
      await file.writeFile(bytes)
      if (isSynced) await file.sync()
      await rename(draft, join(folder, sha256))
      if (isSynced) await syncFolder(folder)
    } catch (error) {
      throw new SallyportError(
        'ERR_JOURNAL',
        `evidence of ${bytes.length} bytes cannot be kept in ${folder} (${errnoOf(error) ?? 'failed'}), so nothing is called; mend the disk, calls resume by themselves`,
        { path: folder },
        { cause: error },
      )
    }
    return { sha256, bytes: bytes.length, path: `evidence/${sha256}` }
  }
}

/** A name outlives a loss of power only once its folder was synced. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  await folder.sync()
}

const nothingSaid: Redaction = { text: 'null', hits: 0 }

const withHits = (members: string, hits: number): string =>
  hits === 0 ? members : `${members},"redacted":${hits}`

/** The members of an object's text, a comma before each. */
const membersOf = (object: string): string => (object === '{}' ? '' : `,${object.slice(1, -1)}`)
