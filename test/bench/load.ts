// A host that calls as fast as it is answered: so many calls in flight, or one at a time with a clock on each.
import type { Readable, Writable } from 'node:stream'

const args = '{"message":"0123456789abcdef0123456789abcdef"}'

/** One host's two streams to a server, whatever lies between them. */
export interface Line {
  readonly write: Writable
  readonly read: Readable
}

let lastId = 0
const request = (): string =>
  `{"jsonrpc":"2.0","id":${++lastId},"method":"tools/call","params":{"name":"echo","arguments":${args}}}\n`

/** Says `initialize`, and resolves once it is answered. */
export async function introduce(line: Line): Promise<void> {
  line.write.write(`{"jsonrpc":"2.0","id":${++lastId},"method":"initialize","params":{}}\n`)
  await answers(line, () => true)
}

/** Sends calls as answers come, so that there are always as many in flight, and no more after `limitMs`. */
export async function flood(
  line: Line,
  calls: number,
  inFlight: number,
  limitMs: number,
): Promise<{ readonly calls: number; readonly seconds: number }> {
  let sent = 0
  let answered = 0
  const began = performance.now()
  const more = (count: number): void => {
    const left = performance.now() - began < limitMs ? calls - sent : 0
    const asked = Array.from({ length: Math.min(count, left) }, request)
    sent += asked.length
    if (asked.length > 0) line.write.write(asked.join(''))
  }
  const all = answers(line, (came) => {
    answered += came
    more(came)
    return answered >= sent
  })
  more(inFlight)
  await all
  return { calls: sent, seconds: (performance.now() - began) / 1000 }
}

/** Sends one call after another, and none after `limitMs`; returns what each took, µs. */
export async function oneByOne(line: Line, calls: number, limitMs: number): Promise<readonly number[]> {
  const taken: number[] = []
  const first = performance.now()
  let began = first
  const all = answers(line, () => {
    const now = performance.now()
    taken.push((now - began) * 1000)
    if (taken.length === calls || now - first >= limitMs) return true
    began = performance.now()
    line.write.write(request())
    return false
  })
  line.write.write(request())
  await all
  return taken
}

/** Hears how many lines came at once, until `isLast` says that there are no more. */
async function answers({ read }: Line, isLast: (lines: number) => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const count = (chunk: Buffer): void => {
    let lines = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
    if (lines > 0 && isLast(lines)) resolve()
  }
  read.on('data', count)
  await promise
  read.off('data', count)
}
