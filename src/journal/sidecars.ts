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

/** Whether a file is called as evidence is. */
export const isSidecarName = (name: string): boolean => /^[0-9a-f]{64}$/.test(name)

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

type Member = (typeof raw)[number]

/** That what a record says to lie beside it does not. */
export interface Lacking {
  readonly seq: number
  readonly member: Member
  readonly detail: string
}

/** What lies beside these records no more, or has another length; a verification is what reads it. */
export function lackingBeside(directory: string, records: readonly Named[]): readonly Lacking[] {
  return records.flatMap(({ seq, body }) =>
    namedIn(body).flatMap(([member, sidecar]) => {
      const detail = isPlace(sidecar) ? missing(directory, sidecar) : noPlace
      return detail === null ? [] : [{ seq, member, detail }]
    }),
  )
}

interface Named {
  readonly seq: number
  readonly body: unknown
}

/** What a record says of what lies beside it, by its member. */
const namedIn = (body: unknown): readonly (readonly [Member, Partial<Sidecar>])[] =>
  raw.flatMap((member) => {
    const said: unknown = Reflect.get(Object(body), member)
    return typeof said === 'object' && said !== null ? [[member, said] as const] : []
  })

const isPlace = (said: Partial<Sidecar>): said is Sidecar => {
  const { sha256, path } = said
  return typeof sha256 === 'string' && isSidecarName(sha256) && path === sidecarPath(sha256)
}

function missing(directory: string, { path, bytes }: Sidecar): string | null {
  try {
    const found = lstatSync(join(directory, path))
    if (!found.isFile()) return notPlain
    return found.size === bytes ? null : otherLength(found.size, bytes)
  } catch (error) {
    return unreadable(error)
  }
}

const noPlace = 'that is no place for evidence'
const notPlain = 'it is no plain file: something was put in its place'
const otherLength = (found: number, said: number): string =>
  `the file has ${found} bytes, the record says ${said}`
const unreadable = (error: unknown): string =>
  errnoOf(error) === 'ENOENT' ? 'the file is missing' : `it cannot be read (${errnoOf(error) ?? 'failed'})`

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
    for (const [member, said] of namedIn(body)) {
      const flaw = isPlace(said) ? this.#flaw(said) : noPlace
      if (flaw !== null) return `its ${member} is to lie in ${String(said.path)}: ${flaw}`
    }
    return null
  }

  #flaw({ sha256, bytes, path }: Sidecar): string | null {
    const seen = this.#seen.get(sha256) ?? this.#look(sha256, path)
    this.#seen.set(sha256, seen)
    if (typeof seen === 'string') return seen
    return seen === bytes ? null : otherLength(seen, bytes)
  }

  #look(sha256: string, path: string): number | string {
    try {
      const found = bytesOf(join(this.#directory, path))
      if (found === null) return notPlain
      const digest = hash('sha256', found)
      return digest === sha256 ? found.length : `the file’s digest is ${digest}: it was changed`
    } catch (error) {
      return unreadable(error)
    }
  }
}
