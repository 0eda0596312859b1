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
  for (const key of ['Params', 'tas\u212aId', 'ＡＢＣ', 'x', 'Stra\u1e9ee', '\u039f\u03a3'])
    expect(foldKey(foldKey(key))).toBe(foldKey(key))
})
