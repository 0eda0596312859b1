// Numbers that a double does not hold are not judged as the double next to them.
import { expect, test } from 'vitest'
import { readsNumbers } from '../../src/call/canonical.ts'

test.each([
  [{ type: 'object', properties: { n: { type: 'integer' } } }, true],
  [{ properties: { n: { maximum: 9_007_199_254_740_992 } } }, true],
  [{ properties: { n: { exclusiveMinimum: 0 } } }, true],
  [{ properties: { n: { multipleOf: 2 } } }, true],
  [{ properties: { n: { enum: [1, 2] } } }, true],
  [{ properties: { n: { type: ['integer', 'null'] } } }, true],
  [{ properties: { list: { uniqueItems: true } } }, true],
  [{ type: 'object', properties: { n: { type: 'number' }, text: { maxLength: 3 } } }, false],
  [{}, false],
  [true, false],
])('%j hangs on which number it is: %s', (schema, isSo) => {
  expect(readsNumbers(schema)).toBe(isSo)
})
