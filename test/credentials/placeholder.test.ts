// What stands in a secret's place can't be guessed, and is never part of another.
import { expect, test } from 'vitest'
import { mintPlaceholder } from '../../src/credentials/placeholder.ts'
import { expectRefusal } from '../support/refusal.ts'

test('it has the prefix and the length that were asked for, and is new each time', () => {
  const minted = new Set(
    Array.from({ length: 500 }, () => mintPlaceholder({ prefix: 'ghp_', length: 40 }, [])),
  )
  expect(minted.size).toBe(500)
  for (const placeholder of minted) expect(placeholder).toMatch(/^ghp_[A-Za-z0-9]{36}$/)
})

test('every letter of its random part is used alike', () => {
  const counts = new Map<string, number>()
  const rounds = 400
  for (let round = 0; round < rounds; round++)
    for (const letter of mintPlaceholder({ prefix: '', length: 62 }, []))
      counts.set(letter, (counts.get(letter) ?? 0) + 1)
  expect(counts.size).toBe(62)
  // 400 expected of each; ten standard deviations either way
  for (const count of counts.values()) expect(Math.abs(count - rounds)).toBeLessThan(200)
})

test.each([
  [{ prefix: 'ghp_', length: 25 }, 'expected at least 26'],
  [{ prefix: 'a'.repeat(40), length: 40 }, 'expected at least 62'],
  [{ prefix: 'a b', length: 40 }, 'expected letters'],
  [{ prefix: 'a%41', length: 40 }, 'expected letters'],
])('%j is refused: %s', async (shape, why) => {
  await expectRefusal(() => mintPlaceholder(shape, []), 'ERR_CREDENTIAL_REFUSED', why)
})
