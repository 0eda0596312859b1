// Evidence that lies beside the journal: whether each file that a record names is there, and is what the record says.
import { hash } from 'node:crypto'
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '../lib/missing.ts'
import { bytesOf } from './segments.ts'

/** What a record says of evidence that is not in it. */
export interface Sidecar {
  readonly sha256: string
  readonly bytes: number
  /** Relative to the journal's folder */
  readonly path: string
}

/** Where the evidence of that digest lies, relative to the journal's folder. */
export const sidecarPath = (sha256: string): string => `evidence/${sha256}`

const draftName = /^\.[0-9a-f]{64}\.[\d.]+$/

/** The name of evidence while it is written, beside where it will lie; another one each time. */
export const draftOf = (sha256: string): string => `.${sha256}.${process.pid}.${performance.now()}`

/**
 * Removes what a daemon that was killed as it wrote evidence left of it; called while nobody writes any. Nothing but plain files
 * of such a name go, by way of no link; one that can't be removed takes up room, and keeps none of the others.
 */
export function removeDrafts(directory: string): void {
  const folder = join(directory, 'evidence')
  orLeave(() => {
    if (!lstatSync(folder).isDirectory()) return
    for (const name of readdirSync(folder).filter((one) => draftName.test(one)))
      orLeave(() => {
        const path = join(folder, name)
        if (lstatSync(path).isFile()) rmSync(path)
      })
  })
}

/** Does it, unless the file system says no. */
function orLeave(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (errnoOf(error) === null) throw error
  }
}

/** Members of a record's body that may lie beside it */
const raw = ['request', 'response'] as const

/** Reads each file once, however many records name it. */
export class Sidecars {
  readonly #directory: string
  /** Digest -> length of the file that has it, or what is wrong with it */
  readonly #seen = new Map<string, number | string>()

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Files that were read so far. */
  get count(): number {
    return this.#seen.size
  }

  /** Why what lies beside this record is not what it says, or null. */
  flawOf(body: unknown): string | null {
    for (const member of raw) {
      const said: unknown = Reflect.get(Object(body), member)
      if (typeof said !== 'object' || said === null) continue
      const flaw = this.#flaw(said)
      if (flaw !== null)
        return `its ${member} is to lie in ${String((said as Partial<Sidecar>).path)}: ${flaw}`
    }
    return null
  }

  #flaw({ sha256, bytes, path }: Partial<Sidecar>): string | null {
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256) || path !== sidecarPath(sha256))
      return 'that is no place for evidence'
    const seen = this.#seen.get(sha256) ?? this.#look(sha256, path)
    this.#seen.set(sha256, seen)
    if (typeof seen === 'string') return seen
    return seen === bytes ? null : `the file has ${seen} bytes, the record says ${String(bytes)}`
  }

  #look(sha256: string, path: string): number | string {
    try {
      const found = bytesOf(join(this.#directory, path))
      if (found === null) return 'it is no plain file: something was put in its place'
      const digest = hash('sha256', found)
      return digest === sha256 ? found.length : `the file’s digest is ${digest}: it was changed`
    } catch (error) {
      return errnoOf(error) === 'ENOENT'
        ? 'the file is missing'
        : `it cannot be read (${errnoOf(error) ?? 'failed'})`
    }
  }
}
