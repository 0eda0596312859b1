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

/** A batch is durable: whoever goes on goes on in a world that knows of all of it. */
export function settle(batch: readonly Pending[], positions: readonly Position[]): void {
  for (const [index, position] of positions.entries()) batch[index]?.folded(position)
  for (const [index, position] of positions.entries()) batch[index]?.durable(position)
}
