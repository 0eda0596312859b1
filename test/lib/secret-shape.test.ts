// Texts with the shape of a secret, and texts that only look busy.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { redactShapes, secretShape } from '../../src/lib/secret-shape.ts'

test.each([
  'ghp_0123456789abcdefghijklmnopqrstuvwxyz',
  'glpat-abcdefghij0123456789',
  'AKIAIOSFODNN7EXAMPLE',
  'sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv0123',
  'xoxb-1234567890-abcdefghij',
  '--token=abc',
  '--db-password=abc',
  'postgres://user:secret@db/name',
  '-----BEGIN RSA PRIVATE KEY-----',
])('%s is seen to be one', (text) => {
  expect(secretShape(text)).not.toBeNull()
})

test.each([
  '/app/dist/index.js',
  '--port=8080',
  '/data/sk-learn-examples-and-more-of-them',
  'https://example.com/path',
  'a sentence about tokens and passwords',
  '--token-limit',
  '',
])('%j is not', (text) => {
  expect(secretShape(text)).toBeNull()
})

const secrets = [
  'ghp_0123456789abcdefghijklmnopqrstuvwxyz',
  'glpat-abcdefghij0123456789',
  'AKIAIOSFODNN7EXAMPLE',
  'AIzaSyA-0123456789abcdefghijklmnopqrstu',
  'sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv0123',
  'xoxb-1234567890-abcdefghij',
  'npm_0123456789abcdefghijklmnopqrstuvwxyz',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJl_of-it',
  '--token=abc',
  'postgres://user:secret@db/name',
  '-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n+/def\n-----END RSA PRIVATE KEY-----',
  '-----BEGIN PRIVATE KEY-----\nMIIEabc cut off',
]
const escaped = (text: string): string =>
  `"${text.replaceAll(/[^]/g, (c) => `\\u${(c.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`)}"`

test.each(secrets)(
  '%j is taken out of a JSON text whole, however it is written, and nothing else is',
  (secret) => {
    const value = {
      before: 'kept',
      deep: [{ said: secret, key: 1 }],
      after: 12345678901234567890n.toString(),
    }
    const plain = JSON.stringify(value)
    for (const text of [
      plain,
      plain.replace(JSON.stringify(secret), escaped(secret)),
      plain.replace(JSON.stringify(secret), JSON.stringify(secret).replaceAll('/', String.raw`\/`)),
      plain.replace('"key":', `${JSON.stringify(secret)}:`),
    ]) {
      const { text: kept, hits } = redactShapes(text)
      expect(hits).toBeGreaterThan(0)
      for (const part of secret
        .split(/[\n:@=]/)
        .filter((word) => word.length > 8 && !word.startsWith('-----')))
        expect(kept).not.toContain(part)
      expect(JSON.parse(kept)).toMatchObject({ before: 'kept', after: value.after })
    }
  },
)

test('a secret in JSON that is a string of JSON is taken out', () => {
  const inner = JSON.stringify({ token: secrets[0] })
  const { text, hits } = redactShapes(JSON.stringify({ text: inner }))
  expect(hits).toBe(1)
  expect(text).not.toContain('0123456789')
})

test('a text without any comes back as it is', () => {
  const text = '{"a-b":"x_y","n":1e400,"s":"\\u0041"}'
  expect(redactShapes(text)).toEqual({ text, hits: 0, kind: null })
})

test('a string is changed where it has a shape, whatever stands around it, and nowhere else', () => {
  const around = [
    '',
    'a',
    'task_',
    'é',
    ' ',
    '\n',
    '\t',
    '"',
    '\\',
    '/',
    '-',
    ':',
    '@',
    '\u0001',
    'disk-usage-of-0A0A0A0A',
  ]
  const busy = [
    'https://u:p"w@host',
    'ftp://:x\\y@host',
    'http://host/@',
    'sk-',
    'eyJ',
    '--token',
    'sk_live_0aB0aB0aB0aB0aB0aB0',
  ]
  const text = fc
    .array(fc.constantFrom(...around, ...busy, ...secrets), { maxLength: 4 })
    .map((pieces) => pieces.join(''))
  const written = fc.constantFrom<(json: string) => string>(
    (json) => json,
    (json) => json.replaceAll('/', String.raw`\/`),
    (json) => json.replaceAll('s', String.raw`\u0073`),
  )
  fc.assert(
    fc.property(text, written, (said, write) => {
      const { hits, text: kept } = redactShapes(write(JSON.stringify([said])))
      expect(hits > 0).toBe(secretShape(said) !== null)
      expect(secretShape((JSON.parse(kept) as [string])[0])).toBeNull()
    }),
    { numRuns: 5000 },
  )
})

// What is looked through once takes no time; what was looked through from each of its places to its end took minutes.
test.each([
  ['an API key', 'sk-'],
  ['a scheme', 'a.'],
  ['an address', 'a://:'],
  ['a header', 'eyJ-'],
  ['a payload', 'eyJ-.'],
  ['a private key', '-----BEGIN '],
  ['an end', '-----BEGIN PRIVATE KEY----------END '],
  ['an option', '--a'],
])('a text of nothing but beginnings of %s is looked through to its end', (_what, beginning) => {
  const text = `${beginning.repeat(300_000 / beginning.length)}eyJaaaaaaaaaa PRIVATE KEY://@`
  const kind = secretShape(text)
  expect(redactShapes(JSON.stringify({ text })).hits > 0).toBe(kind !== null)
})

// V8 has 64 MiB to come back to places of a text that a pattern may have to read differently, and throws where that is not enough.
test.each(['eyJ', '://', 'xoxb-', 'glpat-', 'ghp_aA1', 'github_pat_', 'AIza', 'sk-A1', 'npm_aA1'])(
  'a text that goes on as %j does is looked through to its end, be it as long as a message may be',
  (part) => {
    const text = `://${part} ${part}${part.slice(-1).repeat(16_777_216)} eyJaaaaaaaaaa`
    expect(redactShapes(JSON.stringify(text)).hits > 0).toBe(secretShape(text) !== null)
    const often = `://${part.repeat(16_777_216 / part.length)} eyJaaaaaaaaaa`
    expect(redactShapes(JSON.stringify(often)).hits > 0).toBe(secretShape(often) !== null)
  },
)
