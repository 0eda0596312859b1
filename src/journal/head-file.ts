// Where the journal ended lately, in a file beside its folder: what shows offline that an end was cut off.
import { renameSync, writeFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { isMissing } from '../lib/missing.ts'
import type { Position } from './record.ts'
import { seal, unseal } from './sealed.ts'
import { beginning, listSegments, textOf } from './segments.ts'

/** A head file that is not to be used, and why. */
export interface UnusableHead {
  readonly reason: string
}

/** A journal, as far as its head is kept. */
interface Growing {
  readonly head: Position
  moved(waiting: { readonly signal: AbortSignal }): Promise<void>
}

const pauseMs = 100

/** The head file of the journal in a folder. */
export const headPath = (directory: string): string => `${directory}.head`

/** The place that the journal had reached when it was last written down; null where there is no such file. */
export function readHead(directory: string, key: Uint8Array): Position | UnusableHead | null {
  try {
    const { seq, hash } = unseal('head', textOf(headPath(directory)), key) as Position
    return { seq, hash }
  } catch (error) {
    return isMissing(error) ? null : { reason: error instanceof Error ? error.message : 'it cannot be read' }
  }
}

/** Written before a journal's first record, so that a journal with records and without a head file is one from which that was taken. */
export function beginHead(directory: string, key: Uint8Array): void {
  if (listSegments(directory).length > 0 || readHead(directory, key) !== null) return
  writeFileSync(draftOf(directory), sealed(beginning, key), { mode: 0o600 })
  renameSync(draftOf(directory), headPath(directory))
}

const draftOf = (directory: string): string => `${headPath(directory)}.draft`
const sealed = ({ seq, hash }: Position, key: Uint8Array): string =>
  seal('head', `"seq":${seq},"hash":"${hash}"`, key)

/** Beside the event loop: a file system may take milliseconds to put one file in the place of another. */
async function writeHead(directory: string, key: Uint8Array, head: Position): Promise<void> {
  await writeFile(draftOf(directory), sealed(head, key), { mode: 0o600 })
  await rename(draftOf(directory), headPath(directory))
}

/**
 * Writes the journal's head down at once, at most every 100 ms while it moves or can't be written, and at the end. Of what came
 * later a kill leaves no trace here, which makes the file old and never wrong.
 */
export class HeadKeeper implements AsyncDisposable {
  readonly #journal: Growing
  /** False where it can't be written */
  readonly #write: (head: Position) => Promise<boolean>
  readonly #end = new AbortController()
  readonly #following: Promise<void>

  /** `warn` is told of a file that can't be written, once for each time that it begins. */
  constructor(
    journal: Growing,
    { directory, key, warn }: { directory: string; key: Uint8Array; warn: (error: unknown) => void },
  ) {
    let isFailing = false
    this.#journal = journal
    this.#write = async (head) => {
      try {
        await writeHead(directory, key, head)
        isFailing = false
      } catch (error) {
        if (!isFailing) warn(error)
        isFailing = true
      }
      return !isFailing
    }
    this.#following = this.#follow(this.#end.signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#following
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let written = 0
    for (;;) {
      const isLast = signal.aborted // also where it can't be written then
      const { head } = this.#journal
      if (head.seq !== written && (await this.#write(head))) written = head.seq
      const hasMoved = this.#journal.head.seq !== head.seq // and may not do so again
      if (isLast && !hasMoved) return
      if (this.#journal.head.seq === written) await this.#journal.moved({ signal })
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }
}
