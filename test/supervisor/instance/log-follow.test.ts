// Who follows a log at their own pace is told what went by, and never holds more than a bound of it.
import { expect, test } from 'vitest'
import { followLog } from '../../../src/supervisor/instance/log-follow.ts'
import { LogRing } from '../../../src/supervisor/instance/log-ring.ts'

/** Lines that a reader who began with the first of them finds once all of them were written. */
async function readLate(lines: readonly string[]) {
  const ring = new LogRing(1000)
  const over = new AbortController()
  const following = followLog(ring, over.signal)
  const begun = following.next()
  ring.append(Buffer.from('begun\n'))
  await begun
  for (const line of [...lines, 'last']) ring.append(Buffer.from(`${line}\n`))
  const found: { readonly line: string; readonly lost: number }[] = []
  for await (const one of following) {
    found.push(one)
    if (one.line === 'last') break
  }
  return found
}

const numbered = (count: number, rest: string): readonly string[] =>
  Array.from({ length: count }, (_, n) => `${n} ${rest}`)

test('a reader that is a little behind misses nothing', async () => {
  const lines = numbered(3000, 'x'.repeat(80))
  const found = await readLate(lines)
  expect(found.map(({ line }) => line)).toEqual([...lines, 'last'])
  expect(found.every(({ lost }) => lost === 0)).toBe(true)
})

test.each([
  ['many short lines', numbered(40_000, '')],
  ['few long ones', numbered(80, 'x'.repeat(60_000))],
  ['many empty ones', Array.from({ length: 40_000 }, () => '')],
])(
  'of %s that are too many the newest are kept, and the others counted where they were',
  async (_, lines) => {
    const [first, ...others] = await readLate(lines)
    const all = [first?.line ?? '', ...others.map(({ line }) => line)]
    expect(first?.lost).toBe(lines.length + 1 - all.length)
    expect(others.every(({ lost }) => lost === 0)).toBe(true)
    expect(all).toEqual([...lines, 'last'].slice(-all.length))
    expect(all.length).toBeGreaterThan(10)
    expect(all.reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(1_048_576)
  },
)
