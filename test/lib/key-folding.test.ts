import { expect, test } from 'vitest'
import { confusable, foldKey, spellings } from '../../src/lib/key-folding.ts'

const known = spellings(['params', 'taskId', '_meta', 'uri'])

test.each([
  'Params',
  'PARAMS',
  'param\u017f',
  'tas\u212aId',
  'taskid',
  'ｐarams',
  'params\0',
  'params\0x',
  'params ',
  'par\u200bams',
  'par\ufe0fams',
  'par\u115fams',
  'params\u2028',
  'ur\u0131',
  'ur\u0130',
  'uri\u0307',
  'UR\u0130\u200b',
  '_META',
])('%j could be taken for a known key', (key) => {
  expect(confusable([key], known)).toBe(key)
})

test.each(['params', 'taskId', '_meta', 'param', 'x', 'método', '__proto__', ''])('%j is itself', (key) => {
  expect(confusable([key], known)).toBe(null)
})

test.each([
  ['stra\u00dfe', 'STRASSE'],
  ['STRA\u1e9eE', 'strasse'],
  ['\u03bf\u03b4\u03bf\u03c3', '\u03bf\u03b4\u03bf\u03c2'],
])('%s and %s are one key to who compares them in upper case, or as Unicode folds them', (one, other) => {
  expect(foldKey(one)).toBe(foldKey(other))
})

test('folding is stable', () => {
  for (const key of [
    'Params',
    'tas\u212aId',
    'ＡＢＣ',
    'x',
    'Stra\u1e9ee',
    '\u039f\u03a3',
    'I\u0307\u0307\u0323',
    '\u0130\u0307',
  ])
    expect(foldKey(foldKey(key))).toBe(foldKey(key))
})

test.each([
  ['\u200b', 300],
  ['\u200b', 16_000],
  ['p\u200b', 3],
])('%j, however often it is said, hides no key', (unseen, times) => {
  const padding = unseen.repeat(times)
  const isShown = unseen.startsWith('p')
  expect(confusable([`params${padding}`], known)).toBe(isShown ? null : `params${padding}`)
  expect(confusable([`${padding}PARAMS`], known)).toBe(isShown ? null : `${padding}PARAMS`)
})

test('a long key that is meant is told from another by all of it, in whatever form that is', () => {
  const meant = `${'configuration_of_the_primary_workspace_'.repeat(9)}\u00e9`
  const long = spellings([meant, 'short'])
  const others = [meant.toUpperCase(), meant.normalize('NFD'), `${meant}\u200b`, `\uff43${meant.slice(1)}`]
  for (const other of others) expect(confusable([other], long)).toBe(other)
  for (const another of [`${meant}x`, `${meant.slice(0, -1)}X`, meant])
    expect(confusable([another], long)).toBe(null)
})

test('what is far longer than any key that is meant is folded in part, and is none of them', () => {
  for (const unit of ['\uff30ARAMS', '\ufdfa', '\u1f82', '\u00a8', 'a\u0301\u0302\u0303']) {
    const long = unit.repeat(2000)
    expect(foldKey(long).length).toBeLessThan(1200)
    expect(confusable([long], known)).toBe(null)
  }
  const params = '\uff30ARAMS'.repeat(2000)
  expect(foldKey(params, Infinity)).toBe('params'.repeat(2000))
})

test('keys that are one in the compatibility form have one fold, whatever character stands in them', () => {
  const unlike: string[] = []
  for (let code = 1; code < 0x110000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue
    const one = String.fromCodePoint(code)
    if (one.normalize('NFKC') === one) continue
    for (const key of [`x${one}`, `${one}\u0301`])
      if (foldKey(key) !== foldKey(key.normalize('NFKC'))) unlike.push(key)
  }
  expect(unlike).toEqual([])
})
