// What is told of what anybody can cause as often as they like.
import { expect, test } from 'vitest'
import { Thinned } from '../../src/lib/thinned.ts'

test('the first of a kind is told, and then one each while, with how many there were', () => {
  let now = 0
  const thinned = new Thinned(10, () => now)
  const counts = [1, 2, 3].map(() => thinned.count('a'))
  expect([...counts, thinned.count('b')]).toEqual([1, null, null, 1])
  now = 10
  expect([thinned.count('a'), thinned.count('a'), thinned.count('b')]).toEqual([3, null, 1])
})

test('kinds without number are kept by no more than a bounded number', () => {
  const thinned = new Thinned(10, () => 0)
  for (let kind = 0; kind < 1024; kind++) expect(thinned.count(`${kind}`)).toBe(1)
  expect(thinned.count('0')).toBe(null)
  expect(thinned.count('another')).toBe(1)
  expect(thinned.count('0')).toBe(1)
})
