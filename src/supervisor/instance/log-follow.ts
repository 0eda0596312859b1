// Lines of a log for whoever follows it: at the reader's own pace, within a bound, and with a count of those that went by.
import type { LogLine } from '../../rpc/protocol.ts'
import type { LogRing } from './log-ring.ts'

/** What waits for a reader who is behind, characters; what each line costs beside its own is counted, too */
const mostWaiting = 1_048_576
const lineCost = 256

/** Lines from now on, until the signal; a reader that falls behind loses the oldest, and is told how many. */
export async function* followLog(
  logs: Pick<LogRing, 'listen'>,
  signal: AbortSignal,
): AsyncGenerator<LogLine> {
  const lines: string[] = []
  let [waiting, lost] = [0, 0]
  let wake = (): void => undefined
  const ignore = logs.listen((line) => {
    lines.push(line)
    waiting += costOf(line)
    while (waiting > mostWaiting && lines.length > 1) {
      waiting -= costOf(lines.shift() ?? '')
      lost += 1
    }
    wake()
  })
  const abort = (): void => wake()
  signal.addEventListener('abort', abort, { once: true })
  try {
    while (!signal.aborted) {
      const line = lines.shift()
      if (line === undefined) {
        await new Promise<void>((resolve) => (wake = resolve))
        continue
      }
      waiting -= costOf(line)
      const before = lost
      lost = 0
      yield { line, lost: before }
    }
  } finally {
    ignore()
    signal.removeEventListener('abort', abort)
  }
}

const costOf = (line: string): number => line.length + lineCost
