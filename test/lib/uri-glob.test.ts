import { expect, test } from 'vitest'
import { matchesUri } from '../../src/lib/uri-glob.ts'

test.each([
  ['file:///secret/**', 'file:///secret/x', true],
  ['file:///secret/**', 'file:///public/x', false],
  ['file:///docs/**', 'file:///docs/my%20notes.txt', true],
  ['file:///my docs/**', 'file:///my docs/a', true],
  ['file:///my docs/**', 'file:///my%20docs/a', true],
  ['file:///my%20docs/**', 'file:///my docs/a', true],
  ['note://größe/*', 'note://größe/a', true],
  ['file:///docs/**', 'file:///docs/ｎotes', true],
  ['file:///docs/**', 'file:///docs/%EF%BD%8Eotes', true],
  ['file:///docs/**', 'file:///other/ｎotes', false],
  ['https://x/*', 'https://x/a?to=https%3A%2F%2Fy%2Fz', true],
  ['https://x/**', 'https://x/web/https://y/z', true],
  ['https://x', 'https://x', true],
  ['file://server/docs/**', 'file://server/docs/a', true],
  ['file:///docs/**', 'any://docs/a', false],
  ['file:///docs/**', 'https://good/docs/a', false],
  ['file:///**', 'https://good/docs/a', false],
  ['file:///**', 'https://good', false],
  ['file:///**', 'memo://insights/a', false],
  ['file:///**', 'memo:///a', false],
  ['file:///*', 'postgres://db/table/schema', false],
  ['https://x/a%2a', 'https://x/a%2a', true],
  ['https://x/**', 'https://x/a?b#c', true],
  ['note://a#b*', 'note://a#bc', true],
  ['file:///docs/**', 'file:///docs/a#b', true],
])('%s and %s: every reader is told %s', (glob, value, expected) => {
  expect(matchesUri(glob, value)).toBe(expected)
})

test.each([
  ['an escaped letter', 'file:///%73ecret/x'],
  ['an escaped letter, twice', 'file:///%2573ecret/x'],
  ['escaped dots', 'file:///public/%2e%2e/secret/x'],
  ['an escaped slash', 'file:///public%2f..%2fsecret/x'],
  ['an escaped backslash', 'file:///public%5c..%5csecret/x'],
  ['a scheme in capitals', 'FILE:///secret/x'],
  ['no authority', 'file:/secret/x'],
  ['a named authority', 'file://localhost/secret/x'],
  ['a step that stays', 'file:///./secret/x'],
  ['a doubled slash', 'file:////secret/x'],
  ['backslashes', 'file:\\\\\\secret\\x'],
  ['a tab', 'file:///sec\tret/x'],
  ['an escape that is no text', 'file:///secret/%ff'],
  ['a letter that looks alike', 'file:///ｓecret/x'],
  ['a letter that looks alike, escaped', 'file:///%EF%BD%93ecret/x'],
  ['dots that look alike', 'file:///public/．．/secret/x'],
  ['slashes that look alike', 'file:///public／../secret/x'],
  ['slashes that look alike, escaped', 'file:///secret%EF%BC%8Fx'],
  ['a letter that is not shown', 'file:///se\u200bcret/x'],
  ['a letter that is not shown, escaped', 'file:///se%E2%80%8Bcret/x'],
  ['a letter that is not shown behind one that looks alike', 'file:///ｓ\u00adecret/x'],
  ['dots with what is not shown between them', 'file:///public/.\u2060./secret/x'],
  ['no URI at all', '/secret/x'],
  ['another machine’s name', 'file://evil/secret/x'],
  ['an address', 'file://127.0.0.1/secret/x'],
  ['an address of its own', 'file://[::1]/secret/x'],
  ['another machine’s name, with a query', 'file://evil/secret/x?a'],
  ['another scheme', 'any:///secret/x'],
  ['another scheme, and no authority', 'any:/secret/x'],
  ['this machine, on a port of another scheme', 'any://localhost:80/secret/x'],
  ['a scheme with hosts, and none, to who takes it apart', 'http:/secret/x'],
  ['the same with an empty one', 'https:///secret/x'],
  ['the same of sockets', 'ws:/secret/x'],
  ['no host, and a step that leads nowhere', 'http:/./secret/x'],
  ['no host, and empty steps', 'https:////secret/x'],
])('what some readers take for file:///secret/x is told of nobody: %s', (_what, value) => {
  expect(matchesUri('file:///secret/**', value)).toBeNull()
})

test.each([
  ['file:///**/.ssh/**', 'any:/home/u/.ssh/id'],
  ['file:///*/secret/**', 'any:///home/secret/a'],
  ['file:///**/.env', 'any:/srv/.env'],
  ['file:///secret/**', 'any://localhost/secret/x'],
])('nor does one whose first step is a wildcard pass another scheme: %s and %s', (glob, value) => {
  expect(matchesUri(glob, value)).toBeNull()
})

test.each([
  ['https://inner/**', 'https://somebody@inner/a'],
  ['https://inner/**', 'https://evil\\@inner/a'],
  ['https://inner/**', 'https://evil\\.inner/a'],
  ['https://inner/**', 'https://inner\\a'],
  ['https://inner/**', 'https://inner:443/a'],
  ['https://inner/**', 'https://INNER/a'],
  ['https://inner/**', 'https://inner'],
  ['https://inner/**', 'https://inner./a'],
  ['https://inner/**', 'https://inner.:443/a'],
  ['https://inner/**', 'https://inner。/a'],
  ['postgres://inner/**', 'postgres://Inner/a'],
  ['postgres://inner/**', 'postgres://inner./a'],
  ['https://inner/a???b', 'https://inner/a%20b'],
  ['https://127.0.0.1/**', 'https://0x7f.1/a'],
  ['https://x/admin', 'https://x/admin#a'],
  ['https://x/admin', 'https://X/admin#a'],
  ['https://x/admin', 'https://x:443/admin#a'],
  ['https://x/admin', 'https://x//admin#a'],
  ['https://x/admin', 'https://x/./admin#a'],
  ['https://x/admin', 'https://u@x/admin#'],
  ['note://a/b', 'note://A/b#x'],
  ['https://x/admin', 'https://x/admin/'],
  ['https://x/**/admin', 'https://x/admin'],
  ['file:///etc/passwd', 'file:///etc/passwd#a'],
  ['file:///etc/passwd', 'file:///etc/passwd?a'],
  ['file:///etc/*.key', 'file:///etc/a.key#'],
  ['file:///docs/*.txt', 'file:///docs/secret#.txt'],
  ['file:///docs/*.txt', 'file:///docs/secret?.txt'],
])('nor is one host, or one thing of it, in two spellings: %s and %s', (glob, value) => {
  expect(matchesUri(glob, value)).toBeNull()
})

test.each([
  'file:///docs/．．/secret/x',
  'file:///docs/%EF%BC%8E%EF%BC%8E/secret/x',
  'file:///docs/‥/secret/x',
  'file:///docs／..／secret/x',
  'file:///docs/.\u200b./secret/x',
  'file:///docs/.%E2%80%8B./secret/x',
])('what leads out of a folder for readers that normalize is told of nobody: %s', (value) => {
  expect(matchesUri('file:///docs/**', value)).not.toBe(true)
})

test.each([
  [8192, false],
  [8193, null],
])('of what has look-alikes, %d characters are held against a glob: %s', (length, expected) => {
  expect(matchesUri('file:///docs/**', 'file:///é'.padEnd(length, 'a'))).toBe(expected)
})

test('what a value is taken for is found out once for all that it is compared with, and counted', () => {
  const effort = { left: 1_048_576 }
  const value = `file:///${'ａ\u200b'.repeat(4000)}`
  expect(matchesUri('https://host/**', value, effort)).toBe(false)
  const first = 1_048_576 - effort.left
  expect(first).toBeGreaterThan(value.length * 8)
  const before = effort.left
  expect(matchesUri('https://other/**', value, effort)).toBe(false)
  expect(before - effort.left).toBeLessThan(200)
})

test('what takes more than is left is told of nobody, at once and from then on', () => {
  const effort = { left: 1000 }
  const value = `file:///${'ａ'.repeat(4000)}`
  expect(matchesUri('https://host/**', value, effort)).toBeNull()
  effort.left = 1000
  expect(matchesUri('https://host/**', value, effort)).toBeNull()
})

test.each([
  ['redis://*.example.com/**', 'redis://evil.com?.example.com/x'],
  ['redis://*.example.com/**', 'redis://evil.com%3f.example.com/x'],
  ['redis://*.example.com/**', 'redis://evil.com%23.example.com/x'],
  ['https://api.example.com/**/readme.md', 'https://api.example.com/private/key?/readme.md'],
  ['file:///srv/*.md', 'file:///srv/key%00.md'],
  ['file:///srv/*.md', 'file:///srv/key%23.md'],
  ['file:///srv/docs/**', 'file:///srv/docs/.%0a./key'],
  ['file:///docs/v?', 'file:///docs/v?'],
])('a wildcard goes no further than a reader does: %s and %s', (glob, value) => {
  expect(matchesUri(glob, value)).not.toBe(true)
})

test.each([
  ['https://api.example.com/**', 'URL:https://api.example.com/x'],
  ['file:///etc/**', 'url:file:///etc/passwd'],
  ['file:///etc/**', 'file:///x/.%0a./etc/passwd'],
  ['file:///etc/**', 'file:///e%09tc/passwd'],
  ['file:///etc/passwd', 'file:///etc/passwd%23'],
  ['file:///etc/passwd', 'file:///etc/passwd%00.txt'],
  ['https://a/private', 'https://a/private?'],
  ['https://a/private', 'https://a/private?x=1'],
  ['redis://db.example.com/**', 'redis://db。example.com/0'],
  ['redis://db.example.com/**', 'redis://db%e3%80%82example.com/0'],
  ['redis://db.example.com/**', 'redis://db.example.com。/0'],
])('nor is what one of them finds passed over: %s and %s', (glob, value) => {
  expect(matchesUri(glob, value)).not.toBe(false)
})

test.each([
  ['https://host/**', 'https://host/a%20b?x=1%2F2&y=%25'],
  ['https://host/**', 'https://host/a?x=y#z'],
  ['https://host/search*', 'https://host/search?q=a'],
  ['file:///srv/**', 'file:///srv/100%25.md'],
  ['note://123/*', 'note://123/a'],
  ['note://größe/*', 'note://größe/a'],
  ['redis://*.example.com/**', 'redis://db.example.com/0'],
])('what all take for the same is told: %s and %s', (glob, value) => {
  expect(matchesUri(glob, value)).toBe(true)
})

test.each(['20', 'a0', '85', '2028', '3000', 'feff'])(
  'who drops U+%s at the ends is told what its glob says of the rest, or nobody is',
  (hex) => {
    const blank = String.fromCodePoint(Number(`0x${hex}`))
    for (const end of [blank, encodeURIComponent(blank)]) {
      expect(matchesUri('file:///secret/key', `file:///secret/key${end}`)).toBeNull()
      expect(matchesUri('file:///secret/**', `file:///secret/key${end}`)).toBe(true)
      expect(matchesUri('file:///secret/**', `file:///docs/key${end}`)).toBe(false)
    }
  },
)
