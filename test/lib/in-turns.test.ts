// What takes long altogether is taken in pieces: all of them, in order, and with turns for others in between.
import { expect, test } from 'vitest'
import { inTurns } from '../../src/lib/in-turns.ts'
import { turns } from '../support/turns.ts'

function* slow(pieces: number, ms: number): Generator<number, undefined> {
  for (let piece = 0; piece < pieces; piece += 1) {
    const end = performance.now() + ms
    while (performance.now() < end);
    yield piece
  }
}

test('all pieces come, in their order, and no turn has more of them than a few ms', async () => {
  const seen = turns()
  const all = await inTurns(slow(50, 2))
  seen.stop()
  expect(all).toEqual([...Array(50).keys()])
  expect(seen.count()).toBeGreaterThanOrEqual(50 / 3 - 1)
})

test('what is little is done at once', async () => {
  const seen = turns()
  expect(await inTurns([1, 2, 3])).toEqual([1, 2, 3])
  seen.stop()
  expect(seen.count()).toBe(0)
})

test('where a piece fails, so does the whole', async () => {
  const failing = function* (): Generator<number, undefined> {
    yield 1
    throw new Error('as asked')
  }
  await expect(inTurns(failing())).rejects.toThrow('as asked')
})
