// Evidence on its way into the journal: what was said is kept as it was said, and what is too long lies beside it, by digest.
import { hash } from 'node:crypto'
import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Raw, Recorder } from '../call/ports.ts'
import { SallyportError } from '../errors.ts'
import { errnoOf } from '../lib/missing.ts'
import type { Journal } from '../journal/journal.ts'
import type { Position } from '../journal/record.ts'
import type { Redactor } from '../schema/redactor.ts'

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

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#opening = `{"separation":"${options.separation}"`
  }

  /** Resolves once the record is durable and folded; `redacted` in it counts the secrets that were taken out. */
  record(type: string, body: Readonly<Record<string, unknown>>, raw: Raw = {}): Promise<Position> {
    const { redactor } = this.#options
    const said = redactor.redact(JSON.stringify(body))
    const read = said.hits === 0 ? body : JSON.parse(said.text)
    let text = said.text === '{}' ? `${this.#opening}}` : `${this.#opening},${said.text.slice(1)}`
    let { hits } = said
    for (const [name, whole] of Object.entries(raw)) {
      const kept = redactor.redact(whole)
      hits += kept.hits
      if (!this.#fits(kept.text)) return this.#recordBeside(type, read, withHits(text, hits), name, kept.text)
      text = withMember(text, name, kept.text)
    }
    return this.#append(type, read, withHits(text, hits))
  }

  #append(type: string, body: unknown, text: string): Promise<Position> {
    return this.#options.journal.append({ type, body: text }).then((position) => {
      this.#options.folded({ type, body, ...position })
      return position
    })
  }

  async #recordBeside(
    type: string,
    body: unknown,
    text: string,
    name: string,
    kept: string,
  ): Promise<Position> {
    const sidecar = await this.#keep(kept)
    return this.#append(type, body, withMember(text, name, sidecar))
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

const withHits = (text: string, hits: number): string =>
  hits === 0 ? text : `${text.slice(0, -1)},"redacted":${hits}}`

const withMember = (text: string, name: string, value: unknown): string =>
  `${text.slice(0, -1)},"${name}":${JSON.stringify(value)}}`
