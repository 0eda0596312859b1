// Who reads for a credential: one for a path, two in all, in the order of asking, and whoever waits no longer holds nobody up.
import { expect, test } from 'vitest'
import { onThread } from '../../src/credentials/sources/threads.ts'

const never = new AbortController().signal

test('of many that ask for one path each is let in, in turn', async () => {
  const begun: number[] = []
  let atOnce = 0
  let most = 0
  const work = (n: number) => async (): Promise<void> => {
    begun.push(n)
    most = Math.max(most, ++atOnce)
    await Promise.resolve()
    atOnce--
  }
  const all = Array.from({ length: 2000 }, (_, n) => n)
  await Promise.all(all.map((n) => onThread('/one', never, work(n))))
  expect(begun).toEqual(all)
  expect(most).toBe(1)
})

test('what hangs holds its path and one thread, and who gives up leaves the place to the next', async () => {
  const hung = Promise.withResolvers<void>()
  const first = onThread('/hung', never, () => hung.promise)
  const waiting = new AbortController()
  const given = onThread('/hung', waiting.signal, async () => 'never')
  const next = onThread('/hung', never, async () => 'next')
  expect(await onThread('/sound', never, async () => 'sound')).toBe('sound')
  waiting.abort(new Error('no longer'))
  await expect(given).rejects.toThrow('no longer')
  hung.resolve()
  await first
  expect(await next).toBe('next')
})
