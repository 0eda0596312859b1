// Records on their way into the journal, told what becomes of them batch by batch.
import type { SallyportError } from '../errors.ts'
import type { Entry } from './record.ts'

/** Which record it became. */
export interface Place {
  readonly seq: number
}

/** The same, with when its batch had become durable, ms since 1970. */
export interface PlaceInTime extends Place {
  readonly atMs: number
}

/** A record on its way into the journal, told what becomes of it. */
export interface Pending extends Entry {
  /** It is durable; said to all of a batch, in order, before `durable` is said to any */
  folded(place: PlaceInTime): void
  /** It is durable, and so is all before it */
  durable(place: Place): void
  /** Nothing may stand on it: ERR_JOURNAL */
  failed(error: SallyportError): void
}

/** A batch that begins with record `first` is durable: whoever goes on goes on in a world that knows of all of it. */
export function settle(batch: readonly Pending[], first: number): void {
  const atMs = Date.now() // asked of the system: once for all
  const places = batch.map((_, at): PlaceInTime => ({ seq: first + at, atMs }))
  for (let at = 0; at < batch.length; at++) batch[at]?.folded(places[at] as PlaceInTime)
  for (let at = 0; at < batch.length; at++) batch[at]?.durable(places[at] as Place)
}
