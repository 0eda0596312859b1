// What is long is worked on in turns of its own, piece by piece, and comes out as if it had been worked on at once.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isLong, ownTurn, piecesOf } from '../../src/lib/long-text.ts'
import { redactLongShapes, redactShapes } from '../../src/lib/secret-shape.ts'
import { turns } from '../support/turns.ts'

test('of many who ask, each has a turn that no other has', async () => {
  const seen = turns()
  const all = await Promise.all(Array.from({ length: 20 }, () => ownTurn().then(seen.count)))
  seen.stop()
  expect(all.every((turn) => turn > 0)).toBe(true)
  expect(new Set(all).size).toBe(20)
})

test('pieces are the text, and none ends within a string', () => {
  const text = fc.stringMatching(/^[a"\\{},é:]{0,50}$/)
  fc.assert(
    fc.property(
      fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 20 }),
      fc.nat(40),
      (said, spaces) => {
        const values = said.map(([key, value]) => ({ [key.repeat(300)]: value.repeat(3000) }))
        const json = JSON.stringify(values, null, spaces)
        const pieces = [...piecesOf(json)]
        expect(pieces.join('')).toBe(json)
        for (const piece of pieces) expect(piece.replaceAll(/"(?:[^"\\]|\\.)*"/g, '')).not.toContain('"')
      },
    ),
    { numRuns: 50 },
  )
})

test('secrets are taken out of a long text as out of a short one, in more turns than one', async () => {
  const token = `ghp_${'a1B2'.repeat(10)}`
  const escaped = token
    .split('')
    .map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)
    .join('')
  const item = (n: number): string =>
    n % 1000 === 0 ? `{"at ${token}":"${escaped}","\\"":"x ${token}"}` : `{"n":${n},"text":"\\"word_${n}"}`
  const json = `[${Array.from({ length: 20_000 }, (_, n) => item(n)).join()}]`
  expect(isLong(json)).toBe(true)
  const seen = turns()
  const redacted = await redactLongShapes(json)
  seen.stop()
  expect(redacted).toEqual(redactShapes(json))
  expect(redacted.hits).toBe(60)
  expect(redacted.text).not.toContain(token)
  expect(seen.count()).toBeGreaterThan(2)
})
