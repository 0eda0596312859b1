// Records on their way into the journal, told what becomes of them batch by batch.
import type { SallyportError } from '../errors.ts'
import type { Entry, Position } from './record.ts'

/** A record on its way into the journal, told what becomes of it. */
export interface Pending extends Entry {
  /** It is durable; said to all of a batch, in order, before `durable` is said to any */
  folded(position: Position): void
  /** It is durable, and so is all before it */
  durable(position: Position): void
  /** Nothing may stand on it: ERR_JOURNAL */
  failed(error: SallyportError): void
}

/** A batch is durable, each record at its position: whoever goes on goes on in a world that knows of all of it. */
export function settle(batch: readonly Pending[], positions: readonly Position[]): void {
  for (let at = 0; at < batch.length; at++) batch[at]?.folded(positions[at] as Position)
  for (let at = 0; at < batch.length; at++) batch[at]?.durable(positions[at] as Position)
}
