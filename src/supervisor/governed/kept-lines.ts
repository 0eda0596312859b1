// How much of a session's requests is kept at a time: of those that wait, and of those that may have to be sent again.
import { SallyportError } from '../../errors.ts'
import { noRoom } from '../../schema/room.ts'
import type { HostRequest } from '../lanes/conversation.ts'
import type { SessionHolding } from '../lanes/holding.ts'

/** One session's; a request of which more would be kept is refused. */
export class KeptLines {
  readonly #mostBytes: number
  readonly #holding: SessionHolding
  /** Bytes of sent requests that are kept, by the id that the server knows */
  readonly #sent = new Map<string, number>()
  #bytes = 0

  constructor(mostBytes: number, holding: SessionHolding) {
    this.#mostBytes = mostBytes
    this.#holding = holding
    holding.add(() => this.#bytes)
  }

  /** Counts the line of a request that waits; gives the refusal where it is too much. */
  wait(line: string): SallyportError | null {
    this.#bytes += line.length
    if (this.#bytes <= this.#mostBytes) return this.#holding.fits(this.#bytes) ? null : noRoom()
    return new SallyportError(
      'ERR_BUSY',
      `requests of over ${this.#mostBytes} bytes would be kept for this session; send the next when one is answered`,
    )
  }

  /** It waits no more. */
  drop(line: string): void {
    this.#bytes -= line.length
  }

  /** It was sent: where it may have to be sent again, it is kept until it is answered. */
  send({ line: again, wireId }: HostRequest, line: string): void {
    if (again === null) this.drop(line)
    else this.#sent.set(wireId.key, line.length)
  }

  answer(key: string): void {
    if (this.#sent.size === 0) return
    this.#bytes -= this.#sent.get(key) ?? 0
    this.#sent.delete(key)
  }
}
