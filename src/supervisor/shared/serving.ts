// What serves a session: an instance of its own, or a place at one that its principal's sessions share.
import { SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { InstanceState } from '../../rpc/protocol.ts'
import type { SandboxExit } from '../../sandbox/driver.ts'
import type { Running } from '../ports.ts'
import { type Guest, noExit, type Seat } from './seat.ts'
import { soon } from '../../lib/deadline.ts'

/** The part of an instance that its session needs. */
export interface Serving {
  readonly id: InstanceId
  readonly state: InstanceState
  readonly reason: string | null
  readonly exit: SandboxExit | null
  readonly gone: Promise<void>
  readonly drained: Promise<void>
  start(): Promise<Running>
  ready(): void
  stop(reason: string): Promise<void>
}

/** Entries of a process's lists, as they are known by their texts. */
interface Listed {
  has(entry: string): boolean
  lacks(method: string, entry: string): boolean
}

/** The way to a process that sessions share. */
export interface SharedDoor {
  /** The process that runs, or the last one */
  readonly id: InstanceId
  /** A place at the process, which is started where none runs; fails at once while it may not be */
  join(guest: Guest): Promise<Seat>
  /** Null when it is known what the process lists; otherwise resolves when it is */
  known(): Promise<void> | null
  /** Prompts and templates of the process that were compared; null where none were */
  readonly compared: Listed | null
  /** What the process lists is not what it was */
  changed(): void
}

/** Taken once; leaving it ends no process. */
export class SharedPlace implements Serving {
  readonly exit = noExit
  readonly gone = Promise.resolve()
  readonly drained = Promise.resolve()
  readonly #door: SharedDoor
  readonly #guest: Guest
  readonly #eofMs: number
  #seat: Seat | null = null
  #leftFor: string | null = null

  /** What was asked may be answered for `eofMs` after its guest goes. */
  constructor(door: SharedDoor, guest: Guest, eofMs: number) {
    this.#door = door
    this.#eofMs = eofMs
    this.#guest = guest
  }

  get id(): InstanceId {
    return this.#seat?.instance ?? this.#door.id
  }

  get state(): InstanceState {
    if (this.reason !== null) return 'stopped'
    return this.#seat === null ? 'starting' : 'ready'
  }

  get reason(): string | null {
    return this.#leftFor ?? this.#seat?.lostFor ?? null
  }

  async start(): Promise<Running> {
    const seat = await this.#door.join(this.#guest)
    if (this.#leftFor !== null) {
      seat.leave()
      throw new SallyportError('ERR_SERVER_UNAVAILABLE', this.#leftFor)
    }
    this.#seat = seat
    return seat.running
  }

  /** Whatever can be joined is ready. */
  ready(): void {
    // nothing is left to do
  }

  async stop(reason: string): Promise<void> {
    this.#leftFor ??= this.reason ?? reason
    if (this.#seat !== null) await soon(this.#seat.quiet(), this.#eofMs)
    this.#seat?.leave()
  }
}
