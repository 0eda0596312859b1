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
  await answers(line, 1, () => undefined)
}

/** Sends calls as answers come, so that there are always as many in flight; returns the time it took, s. */
export async function flood(line: Line, calls: number, inFlight: number): Promise<number> {
  let sent = 0
  const more = (count: number): void => {
    let out = ''
    for (let i = 0; i < count && sent < calls; i++, sent++) out += request()
    if (out !== '') line.write.write(out)
  }
  const began = performance.now()
  const all = answers(line, calls, more)
  more(inFlight)
  await all
  return (performance.now() - began) / 1000
}

/** Sends one call after another; returns what each took, µs, ascending. */
export async function oneByOne(line: Line, calls: number): Promise<readonly number[]> {
  const taken: number[] = []
  let began = performance.now()
  const next = (): void => {
    const now = performance.now()
    taken.push((now - began) * 1000)
    if (taken.length === calls) return
    began = performance.now()
    line.write.write(request())
  }
  const all = answers(line, calls, next)
  line.write.write(request())
  await all
  return taken.toSorted((a, b) => a - b)
}

/** Resolves with the last of so many lines; `came` hears of those before, by how many came at once. */
async function answers({ read }: Line, expected: number, came: (lines: number) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = expected
  const count = (chunk: Buffer): void => {
    let lines = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
    left -= lines
    came(lines)
    if (left <= 0) resolve()
  }
  read.on('data', count)
  await promise
  read.off('data', count)
}
