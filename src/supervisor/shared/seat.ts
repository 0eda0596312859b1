// One session's part in a process that sessions share: streams as of a process of its own, and what it has open there.
import { Readable, Writable } from 'node:stream'
import { SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { SandboxExit } from '../../sandbox/driver.ts'
import type { Running } from '../ports.ts'
import { soon } from '../../lib/deadline.ts'

/** Whoever sits there. */
export interface Guest {
  /** It can't be served any longer, while the process and the others go on */
  readonly broken: (error: SallyportError) => void
  /** Whether as many bytes may wait for it, beside what else is kept for its host */
  readonly holding: { readonly fits: (bytes: number) => boolean }
}

export interface SeatOptions {
  readonly server: string
  readonly instance: InstanceId
  readonly process: Running
  readonly guest: Guest
  /** What may wait for a guest that does not read, bytes */
  readonly limitBytes: number
  /** Sends what the guest says; `done` lets it go on */
  readonly forward: (seat: Seat, bytes: Buffer, done: () => void) => void
  /** The guest is gone */
  readonly left: (seat: Seat) => void
}

/** How the end of a seat looks that says nothing of the process */
export const noExit: SandboxExit = { code: 0, signal: null, reason: 'exited' }
/** How long the last that was said may take to be read, ms */
const lastWordMs = 50

/** Held by one guest until it leaves, or until the process is lost. */
export class Seat {
  readonly #options: SeatOptions
  readonly #ended = Promise.withResolvers<SandboxExit>()
  readonly #stdout = new Readable({ read: () => undefined })
  readonly #stdin: Writable
  #isOver = false
  /** Ids of the guest's own requests -> those that the process knows them by */
  readonly sent = new Map<string, number>()
  /** Of those, what the guest has taken back, or the process ended; the answer may be on its way */
  readonly takenBack: number[] = []
  /** Of those, what the guest waits for the end of */
  readonly #awaited = new Set<number>()
  #quiet: (() => void) | null = null
  /** Why the process is lost, or null */
  lostFor: string | null = null
  readonly running: Running

  constructor(options: SeatOptions) {
    this.#options = options
    const { spec, enforcedBy, initPid, redactor, discreet, stderr } = options.process
    this.#stdin = new Writable({ write: (bytes: Buffer, _, done) => options.forward(this, bytes, done) })
    const [stdin, stdout] = [this.#stdin, this.#stdout]
    const nothing = (): void => undefined // the process is not this guest's to end
    this.running = {
      spec,
      enforcedBy,
      initPid,
      orphans: () => options.process.orphans(),
      redactor,
      discreet,
      stdin,
      stdout,
      stderr,
      terminate: nothing,
      kill: nothing,
      abandon: nothing,
      ending: options.process.ending,
      isPaused: () => options.process.isPaused(),
      ended: this.#ended.promise,
      [Symbol.asyncDispose]: () => Promise.resolve(this.leave()),
    }
  }

  get instance(): InstanceId {
    return this.#options.instance
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Resolves when the guest waits for no answer any more. */
  quiet(): Promise<void> {
    if (this.#awaited.size === 0 || this.#isOver) return Promise.resolve()
    return new Promise((resolve) => (this.#quiet = resolve))
  }

  /** The guest waits for an answer that is to come. */
  awaits(number: number): void {
    this.#awaited.add(number)
  }

  /** It does not, or no longer. */
  waited(number: number): void {
    if (this.#awaited.delete(number) && this.#awaited.size === 0) this.#quiet?.()
  }

  /** Says lines to the guest, in latin1 reading; one that does not read them is let go, so that nobody else has to wait. */
  say(lines: string): void {
    if (this.#isOver) return
    this.#stdout.push(Buffer.from(lines, 'latin1'))
    const { limitBytes, server, guest } = this.#options
    const unread = this.#stdout.readableLength
    if (unread <= limitBytes && guest.holding.fits(unread)) return
    this.leave()
    const what = `the host left ${unread} bytes of ${server} unread, whose process it shares`
    guest.broken(new SallyportError('ERR_BUSY', `${what}; read faster, or ask for less at once`))
  }

  /** The process is lost: what was said of it is still heard. */
  lose(reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.lostFor = reason
    this.#stdout.push(null)
    const heard = new Promise<void>((done) => this.#stdout.once('end', done).once('close', done))
    void soon(heard, lastWordMs).then(() => this.#close())
  }

  /** The guest goes: what it has open is taken back, and nothing of it is said any more. Idempotent. */
  leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.left(this)
    this.#close()
  }

  #close(): void {
    this.#quiet?.()
    this.#stdin.destroy()
    this.#stdout.destroy()
    this.#ended.resolve(noExit)
  }
}
