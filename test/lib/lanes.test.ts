// Work in lanes: as much at once as is said, all of it, and nothing more once one has failed.
import { expect, test } from 'vitest'
import { inLanes } from '../../src/lib/lanes.ts'
import { eventually } from '../support/eventually.ts'

/** Pieces of work that go on until they are told to end, and how many of them do. */
const held = (count: number) => {
  const begun: number[] = []
  const pieces = Array.from({ length: count }, (_, index) => ({ index, ...Promise.withResolvers<void>() }))
  const work = async ({ index, promise }: (typeof pieces)[number]): Promise<void> => {
    begun.push(index)
    await promise
  }
  return { begun, pieces, work }
}

test('as many pieces as there are lanes are at work at once, and the next begins as one ends', async () => {
  const { begun, pieces, work } = held(4)
  const all = inLanes(pieces, 2, work)
  expect(begun).toEqual([0, 1])
  pieces[1]?.resolve()
  await eventually(() => begun.length === 3)
  expect(begun).toEqual([0, 1, 2])
  for (const { resolve } of pieces) resolve()
  await all
  expect(begun).toEqual([0, 1, 2, 3])
})

test('where one fails no further one begins, and it throws when nothing goes on', async () => {
  const { begun, pieces, work } = held(4)
  let isOver = false
  const failed = inLanes(pieces, 2, work).then(
    () => null,
    (error: unknown) => {
      isOver = true
      return error
    },
  )
  const reason = new Error('the first')
  pieces[0]?.reject(reason)
  await eventually(() => begun.length === 2)
  await new Promise((resolve) => setImmediate(resolve))
  expect([begun, isOver]).toEqual([[0, 1], false])
  pieces[1]?.resolve()
  expect(await failed).toBe(reason)
  expect(begun).toEqual([0, 1])
})

test('nothing to do is done', async () => {
  await inLanes([], 3, () => Promise.reject(new Error('there is nothing')))
})
