// A secret is found in every form that it may come back in, wherever the pieces of a stream are cut.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRedactor, leakWatch } from '../../src/credentials/redactor.ts'
import { KnownValues, rememberedValues } from '../../src/credentials/values.ts'

const knowing = (...secrets: readonly string[]): KnownValues => {
  const values = new KnownValues()
  secrets.forEach((secret, index) => values.add(`c${index}`, Buffer.from(secret)))
  return values
}
const redactorOf = (...secrets: readonly string[]) => createRedactor(knowing(...secrets).scanner)

const percentEvery = (secret: string, upper: boolean): string =>
  [...Buffer.from(secret)]
    .map(
      (byte) =>
        `%${upper ? byte.toString(16).toUpperCase().padStart(2, '0') : byte.toString(16).padStart(2, '0')}`,
    )
    .join('')
const units = (secret: string): string =>
  Array.from(
    { length: secret.length },
    (_, at) => `\\u${secret.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('')
const wrapped = (text: string): string => text.replaceAll(/.{20}/g, '$&\r\n')
const aligned = (secret: string, before: string, after: string): string =>
  Buffer.from(before + secret + after).toString('base64')

const pairsOf = (secret: string): readonly string[] => Buffer.from(secret).toString('hex').match(/../g) ?? []
const entities = (secret: string, write: (code: number) => string): string =>
  secret.replaceAll(/[\0-\x7f]/g, (letter) => write(letter.charCodeAt(0)))

/** Ways to write a secret. */
const forms: Readonly<Record<string, (secret: string) => string | Buffer>> = {
  raw: (secret) => secret,
  'base64, alone': (secret) => aligned(secret, '', ''),
  'base64, one byte on': (secret) => aligned(secret, 'u', ':tail'),
  'base64, two bytes on': (secret) => aligned(secret, 'u:', '\n'),
  'base64 for URLs': (secret) => Buffer.from(`x:${secret}`).toString('base64url'),
  'base64 in lines': (secret) => wrapped(aligned(secret, '', '')),
  'base64 in a URL': (secret) => encodeURIComponent(aligned(secret, 'xy', '?')),
  'base64 with escaped slashes': (secret) => aligned(secret, '', '').replaceAll('/', '\\/'),
  hex: (secret) => Buffer.from(secret).toString('hex'),
  'hex in capitals': (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
  'hex with colons': (secret) => pairsOf(secret).join(':'),
  'hex with blanks, in lines': (secret) =>
    pairsOf(secret)
      .map((pair, at) => `${pair}${at % 8 === 7 ? '\n' : ' '}`)
      .join(''),
  'hex as numbers': (secret) =>
    pairsOf(secret)
      .map((pair) => `0x${pair}`)
      .join(', '),
  'UTF-16, little end first': (secret) => Buffer.from(secret, 'utf16le'),
  'UTF-16, big end first': (secret) => Buffer.from(secret, 'utf16le').swap16(),
  'entities with decimals': (secret) => entities(secret, (code) => `&#${code};`),
  'entities in hex': (secret) => entities(secret, (code) => `&#x${code.toString(16)};`),
  'named entities': (secret) =>
    secret
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      .replaceAll("'", '&#39;'),
  'URL-encoded': (secret) => encodeURIComponent(secret),
  'form-encoded': (secret) => new URLSearchParams({ '': secret }).toString().slice(1),
  'URL-encoded throughout, twice': (secret) => encodeURIComponent(percentEvery(secret, true)),
  'URL-encoded throughout, three times': (secret) =>
    encodeURIComponent(encodeURIComponent(percentEvery(secret, false))),
  'URL-encoded throughout': (secret) => percentEvery(secret, true),
  'URL-encoded throughout, small': (secret) => percentEvery(secret, false),
  JSON: (secret) => JSON.stringify(secret).slice(1, -1),
  'JSON with escaped slashes': (secret) => JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/'),
  'JSON in ASCII': (secret) =>
    JSON.stringify(secret)
      .slice(1, -1)
      .replaceAll(/[^\0-\x7f]/g, units),
}

const odd = Array.from(
  new Intl.Segmenter().segment('abcAZ019+/=-_.%\\"\'&<>: ~äß€😀'),
  ({ segment }) => segment,
)
/** Sixteen letters and more, odd ones among them, as a token or a password may be. */
const secret = fc
  .string({ unit: fc.constantFrom(...odd), minLength: 16, maxLength: 48 })
  .filter((text) => new Set(text).size > 4)

const inPieces = (bytes: Buffer, at: readonly number[]): readonly Buffer[] => {
  const cuts = [0, ...at, bytes.length]
  return cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end))
}

const through = (
  stream: { push(chunk: Uint8Array): Uint8Array; flush(): Uint8Array },
  pieces: readonly Buffer[],
) => Buffer.concat([...pieces.map((piece) => Buffer.from(stream.push(piece))), Buffer.from(stream.flush())])

describe.each(Object.entries(forms))('a secret as %s', (_, write) => {
  test('is found wherever the stream is cut, byte for byte', () => {
    fc.assert(
      fc.property(secret, fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (text, before, after) => {
        const redactor = redactorOf(text)
        const spelt = Buffer.from(write(text))
        const written = Buffer.concat([Buffer.from(`${before}<`), spelt, Buffer.from(`>${after}`)])
        // Whole, cut once at every byte, and byte by byte
        const cuts = [[], ...Array.from(written.keys(), (at) => [at]), [...written.keys()]]
        for (const cut of cuts) {
          const marks = redactor.stream()
          const marked = through(marks, inPieces(written, cut))
          expect([...marks.found]).toEqual(['c0'])
          expect(marked.toString()).toContain('[redacted:c0]')
          expect(redactor.redact(marked.toString()).found).toEqual([])
          const masked = through(redactor.mask(), inPieces(written, cut))
          expect(masked).toHaveLength(written.length)
          for (const out of [marked, masked]) expect(out.includes(spelt)).toBe(false)
          expect(redactor.redact(masked.toString()).found).toEqual([])
        }
      }),
      { numRuns: 12 },
    )
  })
})

test('what is around a secret stays as it was', () => {
  const redactor = redactorOf('sk_live_0123456789abcdef')
  const text = 'before sk_live_0123456789abcdef after'
  expect(redactor.redact(text)).toEqual({ text: 'before [redacted:c0] after', found: ['c0'] })
  expect(through(redactor.mask(), [Buffer.from(text)]).toString()).toBe(
    'before ************************ after',
  )
})

test('a text without a secret comes back untouched, lone surrogates included', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(redactorOf('0123456789abcdef-secret').redact(text)).toEqual({ text, found: [] })
    }),
  )
  const half = 'half \ud800 a letter'
  expect(redactorOf('0123456789abcdef-secret').redact(half).text).toBe(half)
})

test('bytes without a secret come through whole, however they are cut', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(fc.nat(200), { maxLength: 5 }), (bytes, at) => {
      const cuts = at.map((cut) => Math.min(cut, bytes.length)).sort((one, other) => one - other)
      const whole = through(
        redactorOf('0123456789abcdef-secret').stream(),
        inPieces(Buffer.from(bytes), cuts),
      )
      expect(whole).toEqual(Buffer.from(bytes))
    }),
  )
})

test('of secrets that overlap, nothing is left of either', () => {
  const [one, other] = ['AAAAaaaa11112222', '11112222bbbbBBBB']
  const redactor = redactorOf(one, other)
  const text = Buffer.from('>AAAAaaaa11112222bbbbBBBB<')
  for (const at of text.keys()) {
    expect(through(redactor.mask(), inPieces(text, [at])).toString()).toBe(`>${'*'.repeat(24)}<`)
    expect(through(redactor.stream(), inPieces(text, [at])).toString()).toBe('>[redacted:c0]<')
  }
  expect(redactor.redact(text.toString()).found).toEqual(['c0', 'c1'])
})

test('of secrets that begin alike, each is told by its name', () => {
  const redactor = redactorOf('tokenAAAABBBBCCCC', 'tokenAAAABBBBCCCCDDDD')
  for (const [text, name] of [
    ['x tokenAAAABBBBCCCC y', 'c0'],
    ['x tokenAAAABBBBCCCCDDDD y', 'c1'],
  ] as const)
    expect(redactor.redact(text)).toEqual({ text: `x [redacted:${name}] y`, found: [name] })
})

test('a stream that began before a secret was handed out knows it from then on', () => {
  const values = new KnownValues()
  const stream = createRedactor(values.scanner).stream()
  expect(Buffer.from(stream.push(Buffer.from('late-secret-0123'))).toString()).toBe('late-secret-0123')
  values.add('late', Buffer.from('late-secret-0123'))
  expect(through(stream, [Buffer.from('late-secret-0123')]).toString()).toBe('[redacted:late]')
  expect([...stream.found]).toEqual(['late'])
})

test('with no secrets, chunks and texts are passed on as they are, not copied', () => {
  const redactor = redactorOf()
  const chunk = Buffer.from('anything')
  expect(redactor.stream().push(chunk)).toBe(chunk)
  expect(redactor.redact('anything')).toEqual({ text: 'anything', found: [] })
})

test('a value that is forgotten is zeroed, and no longer found', () => {
  const values = knowing('0123456789abcdef')
  values[Symbol.dispose]()
  expect(createRedactor(values.scanner).redact('0123456789abcdef').found).toEqual([])
})

test('a credential that changes with each call is remembered for so many values and no more', () => {
  const values = new KnownValues()
  const nth = (n: number): string => `minted-token-${String(n).padStart(6, '0')}`
  for (let n = 0; n <= rememberedValues; n++) values.add('minted', Buffer.from(nth(n)))
  const redactor = createRedactor(values.scanner)
  expect(redactor.redact(nth(0)).found).toEqual([])
  expect(redactor.redact(nth(1)).found).toEqual(['minted'])
  expect(redactor.redact(nth(rememberedValues)).found).toEqual(['minted'])
})

test('a watch names the secret with the chunk that completes it', () => {
  const text = Buffer.from('POST data=leaked-value-0123456789 rest')
  const end = text.indexOf(' rest')
  for (let at = 1; at < end; at++) {
    const watch = leakWatch(knowing('leaked-value-0123456789').scanner)
    expect(watch(text.subarray(0, at))).toBeNull()
    expect(watch(text.subarray(at, end))).toBe('c0')
  }
})
