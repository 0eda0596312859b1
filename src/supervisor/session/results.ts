// How sessions ended, for shims that ask after their stream has closed.
import { SallyportError } from '../../errors.ts'
import type { SessionId } from '../../lib/ids.ts'
import type { HostMethods } from '../../rpc/protocol.ts'
import type { Caller, SessionEnd } from '../ports.ts'
import { sees } from '../registered-server.ts'
import type { Session } from './session.ts'
import { soon } from '../../lib/deadline.ts'

/** How long a result is kept, ms */
const keepMs = 60_000
/** How long a question waits for an end that is near, ms */
const waitMs = 2000

interface Entry {
  readonly principal: string
  readonly ended: Promise<SessionEnd>
  timer: NodeJS.Timeout | null
}

/** Keeps one entry for each session, and forgets it a minute after its end. */
export class SessionResults {
  readonly #entries = new Map<SessionId, Entry>()

  expect(session: Session): void {
    const entry: Entry = { principal: session.principal, ended: session.ended, timer: null }
    this.#entries.set(session.id, entry)
    void session.ended.then(() => this.#forgetLater(session.id, entry))
  }

  /** Another principal's session is as unknown as one that never was. */
  async of(caller: Caller, id: SessionId): Promise<HostMethods['session/result']['result']> {
    const entry = this.#entries.get(id)
    if (entry === undefined || !sees(caller, entry.principal)) {
      throw new SallyportError(
        'ERR_INVALID_PARAMS',
        `no session of the caller's has that id; results are kept for ${keepMs / 1000} s`,
      )
    }
    const end = await soon(entry.ended, waitMs)
    return end === null ? { ended: false, status: 0, reason: null } : { ended: true, ...end }
  }

  #forgetLater(id: SessionId, entry: Entry): void {
    entry.timer = setTimeout(() => this.#entries.delete(id), keepMs)
    entry.timer.unref()
  }

  clear(): void {
    for (const { timer } of this.#entries.values()) if (timer !== null) clearTimeout(timer)
    this.#entries.clear()
  }
}
