// Durations are written as JSON writes numbers.
import { expect, test } from 'vitest'
import { toTheMicrosecond } from '../../src/lib/milliseconds.ts'

test('is what JSON writes, for every number of microseconds', () => {
  for (let us = 0; us < 30_000; us++) expect(toTheMicrosecond(us / 1000)).toBe(JSON.stringify(us / 1000))
  for (const ms of [0, 60_000, 86_400_000.001, 2_592_000_000.999])
    expect(toTheMicrosecond(ms)).toBe(JSON.stringify(ms))
})

test('rounds to the microsecond', () => {
  expect(toTheMicrosecond(1.2344)).toBe('1.234')
  expect(toTheMicrosecond(1.9996)).toBe('2')
})
