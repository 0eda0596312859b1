// What has effect and can't be recorded, kept wherever there is room: a daemon that is killed meanwhile begins with it.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import type { StrictFact } from '../../call/facts.ts'
import { SallyportError } from '../../errors.ts'
import { seal, unseal } from '../../journal/sealed.ts'
import { textOf } from '../../journal/segments.ts'
import { isMissing } from '../../lib/missing.ts'
import type { Redactor } from '../../schema/redactor.ts'
import { withoutSecrets } from './verbatim.ts'

/** That approvals beyond one call stand no more, that permits were revoked or a subscription ended: over at once, with nothing to look up. */
type Ended =
  | { readonly type: 'subscription.ended'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly type: 'approval.ended'; readonly body: { readonly ids: readonly string[] } }
  | {
      readonly type: 'permit.revoked'
      readonly body: { readonly permit: string | null; readonly server: string | null }
    }

/** A fact that is in effect, with what its record says beside it. */
export interface Debt {
  readonly fact: StrictFact | Ended
  readonly evidence: Readonly<Record<string, unknown>>
}

export interface OwedOptions {
  /** On disks that may fail independently; each gets all of it */
  readonly paths: readonly string[]
  /** The journal's */
  readonly key: Uint8Array
  /** Takes out what must not be kept */
  readonly redactor: Redactor
  /** Told where no path takes what is `owed`, which a kill loses then, and of an `owed-file` that stays though all is on record */
  readonly warn: (what: 'owed' | 'owed-file', error: SallyportError) => void
}

/** What was found of an earlier life. */
export interface Inherited {
  readonly debts: readonly Debt[]
  readonly refused: readonly { readonly path: string; readonly reason: string }[]
}

interface Owed {
  /** Greater than in all that was written before; files of earlier versions have none */
  readonly count?: number
  readonly debts: readonly Debt[]
}

/** Sealed with the journal's key: who can write to a path can take it away, and put nothing in its place. */
export class OwedFile {
  readonly #options: OwedOptions
  #isThere = false
  /** Of what was read or written last */
  #count = 0

  constructor(options: OwedOptions) {
    this.#options = options
  }

  /** What the last life left: where a path did not take all that was written, what another has that is newer. Nothing is removed before `clear`. */
  read(): Inherited {
    const { paths, key } = this.#options
    const refused: Inherited['refused'][number][] = []
    let newest: Required<Owed> = { count: 0, debts: [] }
    for (const path of paths)
      try {
        removeDraft(path)
        const { count = 0, debts } = unseal('owed', textOf(path), key) as Owed
        const isLonger = count === newest.count && debts.length > newest.debts.length
        if (count > newest.count || isLonger) newest = { count, debts }
        this.#isThere = true
      } catch (error) {
        if (isMissing(error)) continue
        refused.push({ path, reason: error instanceof Error ? error.message : 'it cannot be read' })
      }
    this.#count = newest.count
    return { debts: newest.debts, refused }
  }

  /** Puts these in the place of what was there. */
  write(debts: readonly Debt[]): void {
    const { paths, key, redactor, warn } = this.#options
    this.#count += 1
    const text = seal(
      'owed',
      `"count":${this.#count},"debts":[${debts.map((debt) => textOfDebt(debt, redactor)).join()}]`,
      key,
    )
    let failure: unknown = null
    let written = 0
    for (const path of paths)
      try {
        writeFileSync(draftOf(path), text, { mode: 0o600 })
        renameSync(draftOf(path), path)
        written += 1
      } catch (error) {
        failure = error
        removeDraft(path)
      }
    this.#isThere ||= written > 0
    if (written === 0 && failure !== null) warn('owed', SallyportError.from(failure))
  }

  /** Nothing is owed any more; what can't be removed is tried again the next time. */
  clear(): void {
    if (!this.#isThere) return
    this.#isThere = false
    for (const path of this.#options.paths)
      try {
        rmSync(path, { force: true })
      } catch (error) {
        this.#isThere = true
        this.#options.warn('owed-file', SallyportError.from(error))
      }
  }
}

/** Without secrets, as the records will be. */
function textOfDebt({ fact: { type, body }, evidence }: Debt, redactor: Redactor): string {
  const [of, beside] = [
    withoutSecrets(type, { ...body }, redactor),
    redactor.redact(JSON.stringify(evidence)),
  ]
  return `{"fact":{"type":"${type}","body":${of.text}},"evidence":${beside.text}}`
}

const draftOf = (path: string): string => `${path}.draft`

/** Of a write that failed, or of a daemon that was killed in it. What can't be removed is written over by the next. */
const removeDraft = (path: string): void => {
  try {
    rmSync(draftOf(path), { force: true })
  } catch {
    // the folder's own failure is told by whoever writes there
  }
}
