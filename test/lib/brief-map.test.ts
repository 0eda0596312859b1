// It is a map: whatever is done to it, it holds what Map would hold.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BriefMap, oursAlone } from '../../src/lib/brief-map.ts'

const keys = fc.oneof(
  fc.integer({ min: 0, max: 400 }).map((n) => `n${n}`),
  fc.string({ maxLength: 80 }),
)
const act = fc.record({ key: keys, isSet: fc.boolean(), value: fc.integer() })

test.each([
  ['by anybody’s keys', undefined],
  ['by ids of ours', oursAlone],
])('it holds what Map would hold, after any sequence of settings and deletions, %s', (_, looked) => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 1000, size: 'max' }), (acts) => {
      const brief = new BriefMap<number>(looked)
      const known = new Map<string, number>()
      for (const { key, isSet, value } of acts) {
        if (isSet) brief.set(key, value)
        if (isSet) known.set(key, value)
        else if (value % 2 === 0) expect(brief.delete(key)).toBe(known.delete(key))
        else {
          expect(brief.take(key)).toBe(known.get(key))
          known.delete(key)
        }
        expect(brief.get(key)).toBe(known.get(key))
        expect(brief.has(key)).toBe(known.has(key))
      }
      expect(brief.size).toBe(known.size)
      expect(new Map(brief.keys().map((key) => [key, brief.get(key)]))).toEqual(known)
      expect(brief.values().length).toBe(known.size)
      brief.clear()
      expect([brief.size, brief.keys()]).toEqual([0, []])
    }),
    { numRuns: 200 },
  )
})

test('keys that differ only where no bucket looks are still different keys', () => {
  const brief = new BriefMap<string>()
  const around = (middle: string): string => `${'a'.repeat(40)}${middle}${'z'.repeat(40)}`
  for (const middle of ['1', '2', '3']) brief.set(around(middle), middle)
  brief.delete(around('2'))
  expect(['1', '2', '3'].map((middle) => brief.get(around(middle)))).toEqual(['1', undefined, '3'])
})
