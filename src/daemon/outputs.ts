// What was too long to be answered at once: files of the state directory, each for its own caller, and not for long.
import { randomBytes } from 'node:crypto'
import { open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SallyportError } from '../errors.ts'
import { makeFolder } from '../lib/folder.ts'
import type { CallId } from '../lib/ids.ts'
import { isLong } from '../lib/long-text.ts'
import { isMissing } from '../lib/missing.ts'
import type { OutputPiece, OutputRequest } from '../rpc/governed.ts'
import type { Redactor } from '../schema/redactor.ts'
import type { Caller, Overflow } from '../supervisor/ports.ts'

/** Most that is kept, for one principal and for all, bytes */
const limits = { principal: 67_108_864, all: 268_435_456 } as const
/** How long it is kept, ms */
const keepMs = 3_600_000
/** Largest piece of one answer, bytes */
const pieceBytes = 1_048_576

export interface OutputOptions {
  /** A folder of its own; what an earlier daemon left in it is removed */
  readonly directory: string
  readonly redactor: Redactor
  readonly bounds?: { readonly principal: number; readonly all: number }
  readonly keepMs?: number
}

interface Kept {
  readonly principal: string
  readonly path: string
  readonly bytes: number
  readonly timer: NodeJS.Timeout
}

/** Keeps texts until they are old, crowded out by newer ones, or the daemon ends; whoever opened it disposes of it. */
export class Outputs implements Overflow, AsyncDisposable {
  readonly #options: OutputOptions
  /** Oldest first */
  readonly #kept = new Map<CallId, Kept>()

  private constructor(options: OutputOptions) {
    this.#options = options
  }

  static async open(options: OutputOptions): Promise<Outputs> {
    await rm(options.directory, { recursive: true, force: true })
    makeFolder(options.directory, 0o700)
    return new Outputs(options)
  }

  async redact(json: string): Promise<string> {
    const { redactor } = this.#options
    return isLong(json) ? (await redactor.redactLong(json)).text : redactor.redact(json).text
  }

  /** Null where it can't be kept: a call that was made is not undone by a full disk. */
  async keep(call: CallId, principal: string, text: string): Promise<string | null> {
    const { directory, bounds = limits } = this.#options
    const bytes = Buffer.byteLength(text)
    if (bytes > bounds.principal || bytes > bounds.all) return null
    this.#makeRoom(bounds.principal - bytes, (one) => one.principal === principal)
    this.#makeRoom(bounds.all - bytes, () => true)
    const path = join(directory, `${call}-${randomBytes(8).toString('hex')}.json`)
    const timer = setTimeout(() => this.#drop(call), this.#options.keepMs ?? keepMs)
    timer.unref()
    this.#kept.set(call, { principal, path, bytes, timer })
    try {
      await writeFile(path, text, { flag: 'wx', mode: 0o600 })
    } catch {
      this.#drop(call)
    }
    if (this.#kept.has(call)) return path
    // Where it was crowded out meanwhile, it may have been removed before it was there.
    await remove(path)
    return null
  }

  /** A piece of what a call of the caller's left, ending between two characters. */
  async read(
    caller: Caller,
    { call_id: call, offset = 0, limit = pieceBytes }: OutputRequest,
  ): Promise<OutputPiece> {
    const kept = this.#kept.get(call)
    if (kept === undefined || (caller.role === 'host' && kept.principal !== caller.principal.id))
      throw gone(call)
    await using file = await open(kept.path, 'r').catch((error: unknown) => {
      throw isMissing(error) ? gone(call) : error // it may only be that descriptors have run out
    })
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(Math.max(4, Math.min(limit, pieceBytes))),
      position: offset,
    })
    const text = new TextDecoder().decode(buffer.subarray(0, bytesRead), { stream: true })
    const next = offset + Buffer.byteLength(text)
    return { call_id: call, bytes: kept.bytes, offset, text, next: next < kept.bytes ? next : null }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { timer } of this.#kept.values()) clearTimeout(timer)
    this.#kept.clear()
    await rm(this.#options.directory, { recursive: true, force: true })
  }

  #makeRoom(limit: number, which: (kept: Kept) => boolean): void {
    const mine = [...this.#kept].filter(([, kept]) => which(kept))
    let sum = mine.reduce((total, [, { bytes }]) => total + bytes, 0)
    for (const [call, { bytes }] of mine) {
      if (sum <= limit) return
      this.#drop(call)
      sum -= bytes
    }
  }

  #drop(call: CallId): void {
    const kept = this.#kept.get(call)
    if (kept === undefined) return
    clearTimeout(kept.timer)
    this.#kept.delete(call)
    void remove(kept.path)
  }
}

/** A folder that goes away takes it along. */
const remove = (path: string): Promise<void> => rm(path, { force: true }).catch(() => undefined)

const gone = (call: CallId): SallyportError =>
  new SallyportError(
    'ERR_OUTPUT_NOT_FOUND',
    `nothing is kept of a call ${call} of the caller's; long results are kept for an hour, and fewer where there are many`,
    { call },
  )
