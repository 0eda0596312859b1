// Tells something the first time, the second, the fourth, …, so that a flood of it costs nothing and is not hidden.
import type { SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { Emit } from '../ports.ts'

/** Told each time: there are no more of them than a person answers */
const isBounded = new Set(['session/sensitive-question'])

/** Told apart by why, in words that are Sallyport's own and few: what is declined for one reason hides nothing that is for another */
const byReason = new Set(['session/declined', 'session/input-answered'])

/** Events of one session or slot, thinned by kind; each carries how often its kind has happened. */
export class Notes {
  readonly #emit: Emit
  readonly #about: { readonly server: string; readonly principal: string }
  readonly #counts = new Map<string, number>()

  constructor(emit: Emit, about: { readonly server: string; readonly principal: string }) {
    this.#emit = emit
    this.#about = about
  }

  /** `error` is what it tells of, whose code says whether that is a bug. */
  add(
    type: string,
    instance: InstanceId | null,
    detail: Readonly<Record<string, unknown>>,
    error: SallyportError | null = null,
  ): void {
    const kind = byReason.has(type) ? `${type} ${String(detail['reason'])}` : type
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    if (isBounded.has(type) || Number.isInteger(Math.log2(count)))
      this.#emit({ type, ...this.#about, instance, detail: { ...detail, count }, ...bugOf(error) })
  }
}

/** What of an event is for the log alone, where the error that it tells of is a bug. */
export const bugOf = (error: SallyportError | null = null): { readonly bug?: SallyportError } =>
  error?.code === 'ERR_INTERNAL' ? { bug: error } : {}
