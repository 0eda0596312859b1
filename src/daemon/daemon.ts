// A daemon that runs: what of it is to be seen, and the way down.
import type { SallyportError } from '../errors.ts'
import type { DaemonId } from '../lib/ids.ts'
import type { Logger } from '../lib/logger.ts'
import type { RuntimePaths } from '../rpc/runtime-dir.ts'
import type { Doors } from './door.ts'
import type { Reloaded } from './reload.ts'
import { type Undo, unwind } from './unwind.ts'

interface Parts {
  readonly doors: Doors
  readonly undo: Undo
  readonly log: Logger
}

/** A running daemon. Disposing stops every server, then closes both doors, then lets the lock go. */
export class Daemon implements AsyncDisposable {
  readonly id: DaemonId
  readonly paths: RuntimePaths
  /** Resolves when it should go down: null because it was asked to, or the error that makes it */
  readonly ended: Promise<SallyportError | null>
  /** Goes over to what the configuration says now, on the word of the daemon's own user; rejects where it is refused */
  readonly reload: () => Promise<Reloaded>
  readonly #parts: Parts
  #isDown: Promise<boolean> | null = null

  constructor(
    id: DaemonId,
    paths: RuntimePaths,
    reloadNow: () => Promise<Reloaded>,
    ended: Promise<SallyportError | null>,
    parts: Parts,
  ) {
    this.id = id
    this.paths = paths
    this.reload = reloadNow
    this.ended = ended
    this.#parts = parts
  }

  /** Takes it down; resolves with whether nothing of it is left, for sure. Idempotent. */
  goDown(): Promise<boolean> {
    return (this.#isDown ??= this.#goDown(this.#parts))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.goDown()
  }

  // Nobody new comes in; then servers end while their hosts are still connected, so that the last answers arrive.
  async #goDown({ doors, undo, log }: Parts): Promise<boolean> {
    log.info({ daemon: this.id }, 'daemon ends')
    doors.closeIntake()
    const isClean = await unwind(undo, log)
    log.info({ daemon: this.id }, 'daemon ended')
    return isClean
  }
}
