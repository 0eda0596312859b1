// What a scanner finds is what each needle finds by itself, held against every place of a text, however that is written.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { differs, endsEarly, matchAt, type Needle, needlesOf } from '../../src/credentials/needle.ts'
import { type Hit, type Scan, Scanner } from '../../src/credentials/scanner.ts'
import { mayStandFor } from '../../src/credentials/written-byte.ts'

const secrets = [
  'correct-horse-battery',
  'per%cent&and\\slash',
  'schlüssel-zum-tor',
  'a b+c"d\'e<f>g/h',
  'Aa1%',
  ' begins-with-a-space',
  '\\begins-with-one',
]
const needles = secrets.flatMap((secret, n) => needlesOf(`key${n}`, Buffer.from(secret)))
const scanner = new Scanner(needles)

/** Every needle at every place. */
function byNeedle(bytes: Uint8Array, isLast: boolean): Scan {
  const hits: Hit[] = []
  for (let start = 0; start < bytes.length; start++) {
    let [end, isEarly]: [number, boolean] = [endsEarly, false]
    let longest: Needle | null = null
    for (const needle of needles) {
      const found = matchAt(bytes, start, needle)
      isEarly ||= found === endsEarly
      if (found > end) [end, longest] = [found, needle]
    }
    if (!isLast && isEarly) return { hits, decidedTo: start }
    if (longest === null) continue
    const { credential } = longest
    const last = hits.at(-1)
    // Those of one credential that overlap are one.
    if (last !== undefined && last.credential === credential && start < last.end)
      hits[hits.length - 1] = { ...last, end: Math.max(last.end, end) }
    else hits.push({ start, end, credential })
  }
  return { hits, decidedTo: bytes.length }
}

const hex = (byte: number, digits: number): string => byte.toString(16).padStart(digits, '0')
const writings: readonly ((byte: number) => string)[] = [
  (byte) => String.fromCharCode(byte),
  (byte) => `%${hex(byte, 2)}`,
  (byte) => `%25${hex(byte, 2).toUpperCase()}`,
  (byte) => `%2525${hex(byte, 2)}`,
  (byte) => `&#${byte};`,
  (byte) => `&#x${hex(byte, 2)};`,
  (byte) => `\\u${hex(byte, 4)}`,
  (byte) => `\\x${hex(byte, 2)}`,
  (byte) => `\\${String.fromCharCode(byte)}`,
  (byte) => String.fromCharCode(byte).toUpperCase(),
  () => '+',
  () => '&lt;',
  () => '&amp;',
]

/** A secret, or what was made of it by base64 or in hex, each byte written in some way, and cut somewhere. */
const written = fc
  .record({
    secret: fc.constantFrom(...secrets),
    form: fc.constantFrom('latin1', 'base64', 'base64url', 'hex', 'utf16le'),
    ways: fc.array(fc.nat(writings.length - 1), { minLength: 1, maxLength: 6 }),
    from: fc.nat(4),
    length: fc.nat(400),
  })
  .map(({ secret, form, ways, from, length }) => {
    const encoded = form === 'latin1' || form === 'utf16le' ? secret : Buffer.from(secret).toString(form)
    const bytes = Buffer.from(encoded, form === 'utf16le' ? 'utf16le' : 'utf8')
    const text = [...bytes].map((byte, n) => writings[ways[n % ways.length] ?? 0]?.(byte) ?? '').join('')
    return text.slice(from, from + length)
  })
const noise = fc.constantFrom(
  '&',
  '&#',
  '&#x4',
  '&#0000',
  '%',
  '%2',
  '%25',
  '\\',
  '\\u00',
  '\\\\',
  '+',
  'x',
  '\0',
  '&q',
  '"',
)
const hostile = fc
  .array(fc.oneof(written, noise), { maxLength: 5 })
  .map((parts) => Buffer.from(parts.join(''), 'latin1'))

test('what is found is what each needle finds by itself', () => {
  fc.assert(
    fc.property(hostile, fc.boolean(), (bytes, isLast) => {
      expect(scanner.scan(bytes, 0, isLast)).toEqual(byNeedle(bytes, isLast))
    }),
    { numRuns: 3000 },
  )
})

test.each([
  ['what repeats itself, in a text of it', 'a'.repeat(64), 'a'.repeat(1_000_000)],
  ['a long one, in a text that nearly is it', 'a'.repeat(4096), `${'a'.repeat(4095)}b`.repeat(244)],
  ['one that begins so', `${'ab'.repeat(2000)}-and-ends`, 'ab'.repeat(500_000)],
])('%s is looked for to the end, and what took too long is taken for it', (_what, secret, text) => {
  const repeating = new Scanner(needlesOf('key', Buffer.from(secret)))
  const bytes = Buffer.from(text)
  const { hits, decidedTo } = repeating.scan(bytes, 0, true)
  expect([hits.length, hits.at(-1)?.end, decidedTo]).toEqual([1, bytes.length, bytes.length])
  // In pieces, a whole one behind it is still found, whichever piece it begins in.
  const first = repeating.scan(bytes, 0, false)
  const rest = Buffer.concat([bytes.subarray(first.decidedTo), Buffer.from(` ${secret}`)])
  const { hits: found } = repeating.scan(rest, 0, true)
  expect(found.at(-1)).toMatchObject({ end: rest.length, credential: 'key' })
})

const widths: Readonly<Record<string, (byte: number) => string>> = {
  'as they are': (byte) => String.fromCharCode(byte),
  'URL-encoded three times': (byte) => `%2525${hex(byte, 2)}`,
  'as entities of seven digits': (byte) => `&#x${hex(byte, 7)};`,
  'as such entities, in lines that are escaped': (byte) => `\\r\\n&#x${hex(byte, 7)};`,
  'as escapes, in lines': (byte) => `\r\n\\u${hex(byte, 4)}`,
}

test.each(Object.entries(widths))(
  'where all is taken for a hit, each form of a value that goes on in the next piece is looked at there from its beginning, %s',
  (_what, write) => {
    const [value, longer] = [64, 24_000].map((length) => needlesOf('key', Buffer.from('a'.repeat(length))))
    for (const [n, needle] of (value ?? []).entries()) {
      const one = new Scanner([needle])
      // Forms that are never so written are written plainly; the first byte has no line before it.
      const written = [...needle.text].map((byte) => write(byte)).join('')
      const inLine = written.replace(/^\\r\\n|^\r\n/, '')
      const plain = Buffer.from(needle.text).toString('latin1')
      const text = matchAt(Buffer.from(inLine), 0, needle) > 0 ? inLine : plain
      const burden = `${Buffer.from(longer?.[n]?.text ?? []).toString('latin1')}!`
      for (const part of [0.4, 0.79, 0.99]) {
        const cut = Math.floor(part * text.length)
        const bytes = Buffer.from(burden + text.slice(0, cut))
        const { hits, decidedTo } = one.scan(bytes, 0, false)
        expect(hits.at(-1)?.end, 'all is taken for a hit').toBe(bytes.length)
        expect(decidedTo, `${cut} of ${text.length}`).toBeLessThanOrEqual(bytes.length - cut)
      }
    }
  },
)

test('no needle begins where its first byte may not stand', () => {
  fc.assert(
    fc.property(hostile, (bytes) => {
      for (let at = 0; at < bytes.length; at++) {
        const may = mayStandFor(bytes, at)
        if (may === null) continue
        for (const needle of needles) {
          const { alike, text } = needle
          const isAmong = may.some((byte) => alike[byte] === alike[text[0] ?? 0])
          // Asked millions of times: an `expect` for each would take longer than all else
          if (!isAmong && matchAt(bytes, at, needle) !== differs)
            expect.fail(`${needle.credential} matches at ${at} of ${JSON.stringify(String(bytes))}`)
        }
      }
    }),
    { numRuns: 500 },
  )
})

test.each(['&#', '\\', '&#0000', '%25', '\\u0001', '&#1;', '\\x01'])(
  'a text of nothing but %s makes nobody compare the needles at each place',
  (part) => {
    const bytes = Buffer.from(part.repeat(30))
    for (let at = 0; at < 20 * part.length; at++) {
      const may = mayStandFor(bytes, at) ?? secrets
      const compared = needles.filter(({ alike, text }) =>
        may.some((byte) => alike[Number(byte)] === alike[text[0] ?? 0]),
      )
      expect(compared.length).toBeLessThan(needles.length / 6)
    }
  },
)
