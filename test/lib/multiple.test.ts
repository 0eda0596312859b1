// A number is a multiple of another as people reckon, and no number takes long.
import { expect, test } from 'vitest'
import { isMultiple } from '../../src/lib/multiple.ts'

test.each([
  [6, 3, true],
  [7, 3, false],
  [-6, 3, true],
  [0, 0.1, true],
  [-0, 7, true],
  [19.99, 0.01, true],
  [0.07, 0.01, true],
  [0.3, 0.1, true],
  [0.35, 0.1, false],
  [1e21, 1000, true],
  [1.5e300, 5e299, true],
  [Number.MAX_VALUE, Number.MIN_VALUE, true],
  [Number.MIN_VALUE, 1, false],
  [1, 0, false],
  [0.5, 0, false],
])('%d of %d: %s', (number, step, is) => {
  expect(isMultiple(number, step)).toBe(is)
})
