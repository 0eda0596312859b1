// Evidence on its way into the journal: what was said is kept as it was said, and what is too long lies beside it, by digest.
import { hash } from 'node:crypto'
import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Raw, Recorder } from '../call/ports.ts'
import { SallyportError } from '../errors.ts'
import { errnoOf } from '../lib/missing.ts'
import type { Journal } from '../journal/journal.ts'
import type { Position } from '../journal/record.ts'

export interface RecorderOptions {
  readonly journal: Journal
  /** The journal's folder; long evidence goes to `evidence/` in it */
  readonly directory: string
  /** Longest request or response that a record holds whole, bytes */
  readonly evidenceBytes: number
  readonly isSynced: boolean
  /** Takes out of a request or response what must not be kept */
  readonly redact: (text: string) => string
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

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  record(type: string, body: Readonly<Record<string, unknown>>, raw: Raw = {}): Promise<Position> {
    let text = JSON.stringify(body)
    for (const [name, said] of Object.entries(raw)) {
      const kept = this.#options.redact(said)
      if (!this.#fits(kept)) return this.#recordBeside(type, text, name, kept)
      text = withMember(text, name, kept)
    }
    return this.#options.journal.append({ type, body: text })
  }

  async #recordBeside(type: string, text: string, name: string, kept: string): Promise<Position> {
    const sidecar = await this.#keep(kept)
    return this.#options.journal.append({ type, body: withMember(text, name, sidecar) })
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

const withMember = (text: string, name: string, value: unknown): string =>
  `${text.slice(0, -1)}${text === '{}' ? '' : ','}"${name}":${JSON.stringify(value)}}`
