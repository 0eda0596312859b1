// How paths lie to one another, for any paths.
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isNormal, isWithin, overlapOf } from '../../src/lib/path-overlap.ts'

const name = fc.stringMatching(/^[a-z]{1,3}$/)
const path = fc.array(name, { maxLength: 4 }).map((names) => `/${names.join('/')}`)

describe('overlapOf', () => {
  test('has a mirror: what is above has the other inside', () => {
    const mirror = { at: 'at', above: 'inside', inside: 'above', apart: 'apart' } as const
    fc.assert(
      fc.property(path, path, (one, other) => overlapOf(other, one) === mirror[overlapOf(one, other)]),
    )
  })

  test('finds every path inside its folders, and the root above all', () => {
    fc.assert(
      fc.property(path, fc.array(name, { minLength: 1, maxLength: 3 }), (folder, names) => {
        const below = join(folder, ...names)
        expect(overlapOf(below, folder)).toBe('inside')
        expect(isWithin(below, folder) && isWithin(below, '/') && isWithin(folder, folder)).toBe(true)
      }),
    )
  })

  test('takes no neighbour with a common beginning for a child', () => {
    expect(overlapOf('/home/user2', '/home/user')).toBe('apart')
    expect(overlapOf('/home/user', '/home/user2')).toBe('apart')
  })
})

test('a path with dots, doubled or trailing slashes, or control characters is not normal', () => {
  for (const bad of [
    '',
    '.',
    'a',
    './a',
    '/a/',
    '//a',
    '/a//b',
    '/a/../b',
    '/a/.',
    '/a\0b',
    '/a\nb',
    '/a\x7f',
  ])
    expect([bad, isNormal(bad)]).toEqual([bad, false])
  for (const good of ['/', '/a', '/a b/ü', '/..a/b..']) expect([good, isNormal(good)]).toEqual([good, true])
})
