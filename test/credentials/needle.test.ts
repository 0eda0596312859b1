// What is looked for of a secret is kept for minutes: no more of the memory than it takes.
import { expect, test } from 'vitest'
import { needlesOf } from '../../src/credentials/needle.ts'
import { createRedactor } from '../../src/credentials/redactor.ts'
import { KnownValues } from '../../src/credentials/values.ts'

test.each(['correct-horse-battery', 'per%cent&and\\slash', 'schlüssel-zum-tor'])(
  'what is looked for of %s has memory of its own',
  (secret) => {
    const texts = needlesOf('key', Buffer.from(secret)).map(({ text }) => text)
    expect(texts.length).toBeGreaterThan(4)
    for (const { buffer, byteLength } of texts) expect(buffer.byteLength).toBe(byteLength)
  },
)

test('what is known is found until it is disposed of, and is zero from then on', () => {
  const known = new KnownValues()
  known.add('key', Buffer.from('correct-horse-battery'))
  const texts = known.needles.map(({ text }) => text)
  expect(known.scanner()).not.toBeNull()
  known[Symbol.dispose]()
  expect(known.scanner()).toBeNull()
  for (const text of texts) expect([...text].every((byte) => byte === 0)).toBe(true)
})

test('a value is found in another case, as the name of a host has it, unless it may be a word', () => {
  const known = new KnownValues()
  known.add('key', Buffer.from('Correct-Horse-Battery'))
  known.add('word', Buffer.from('Staple'))
  const redactor = createRedactor(known.scanner)
  expect(
    redactor.redact('correct-horse-battery.evil.test CORRECT-HORSE-BATTERY %63ORRECT-horse-battery').text,
  ).toBe('[redacted:key].evil.test [redacted:key] [redacted:key]')
  expect(redactor.redact('staple Staple').text).toBe('staple [redacted:word]')
})
