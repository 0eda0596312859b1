// What subscribers are told of events: those of a turn of the event loop together, however many they are.
import type { Notifier } from '../rpc/answering.ts'
import { notificationLine } from '../rpc/framing.ts'
import type { SallyportEvent } from '../rpc/protocol.ts'
import type { Caller } from '../supervisor/ports.ts'
import type { EventLog } from './events.ts'

/** Most events that are taken from the log at once: what waits for a subscriber who reads slowly goes by there, and is counted */
const pageEvents = 64
/** Most that is written at once, characters, but for one event */
const pieceLength = 65_536

/** Tells of events behind `since` until the stream's signal. */
export async function feedEvents(
  events: Pick<EventLog, 'pages'>,
  since: number,
  caller: Caller,
  stream: Notifier,
): Promise<void> {
  for await (const page of events.pages(caller, since, pageEvents, stream.signal))
    for (const piece of pieces(page.map(lineOf))) await stream.pass(Buffer.from(piece))
}

const laidOut = new Map<SallyportEvent, string>()

/** Laid out once for all who are told of it in one turn of the event loop; who is later is behind, and few are. */
function lineOf(event: SallyportEvent): string {
  const line = laidOut.get(event) ?? notificationLine('events/event', event)
  if (laidOut.size === 0) setImmediate(() => laidOut.clear())
  laidOut.set(event, line)
  return line
}

function* pieces(lines: readonly string[]): Generator<string> {
  let piece = ''
  for (const line of lines) {
    if (piece !== '' && piece.length + line.length > pieceLength) {
      yield piece
      piece = ''
    }
    piece += line
  }
  yield piece
}
