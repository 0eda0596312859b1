// What a launch that is only planned says of the rule that it is to be refused by.
import { expect, test } from 'vitest'
import { SallyportError } from '../../../src/errors.ts'
import type { Lab } from '../../../src/verify/lab/lab.ts'
import { refusesPlans, type Wanted } from '../../../src/verify/lab/planned.ts'

const denied =
  'ERR_MOUNT_REFUSED mount of /a at /b for s is inside /a, a key, which no configuration grants; mount something else'
const closed = 'ERR_MOUNT_REFUSED mount of /c at /b for s cannot be read by uid 7; give it to that user'
const unknown = 'ERR_INTERNAL the disk is full'
const wanted = ['one', 'two'].map((what): Wanted => ({ what, of: (lab) => lab }))
const attempt = refusesPlans('by name', wanted, 'what is denied to everybody')
const said = (outcome: string, ...lines: readonly string[]) =>
  attempt.meaning({ outcome, text: lines.join('\n'), ms: 0 })

test.each([
  [
    'shut, and says by which rule',
    said('refused', denied, denied),
    'shut',
    'refused by “what is denied to everybody”',
  ],
  [
    'not as expected where another rule answered, which is named',
    said('refused', denied, closed),
    'otherwise',
    `not refused by “what is denied to everybody”: two, refused by “mounts that the user can use”: ${closed}`,
  ],
  [
    'not as expected where no rule answered',
    said('refused', unknown, denied),
    'otherwise',
    `not refused by “what is denied to everybody”: one, refused by “none of these rules”: ${unknown}`,
  ],
  [
    'open where nothing answered',
    said('open', 'two'),
    'open',
    'planned, not refused by “what is denied to everybody”: two',
  ],
  ['broken where nothing was asked', said('refused'), 'broken', 'refused'],
  [
    'shut where the rest had gone before it was asked for',
    said('refused', denied, 'gone'),
    'shut',
    'refused by “what is denied to everybody”',
  ],
  ['broken where all had gone', said('refused', 'gone', 'gone'), 'broken', 'refused'],
])('is %s', (_, meaning, is, observed) => {
  expect(meaning).toEqual({ is, observed, errno: null })
})

/** A launch that is refused with these words as soon as it is planned. */
const refusing = (words: string): Wanted['of'] => {
  const error = new SallyportError('ERR_MOUNT_REFUSED', words)
  return (lab) =>
    new Proxy(lab, {
      get: () => {
        throw error
      },
    })
}

test.each([
  [true, 'shut'],
  [false, 'otherwise'],
])('what was there and is found no more (gone: %s) is %s', async (isGone, is) => {
  const [denial, missing] = ['is inside /a, a key, which no configuration grants', 'does not exist']
  const planning = refusesPlans(
    'homes',
    [
      { what: 'one', of: refusing(denial), isGone: () => true },
      { what: 'two', of: refusing(missing), isGone: () => isGone },
    ],
    'what is denied to everybody',
  )
  const answer = await planning.plan?.({} as Lab)
  expect(planning.meaning({ ms: 0, outcome: '', text: '', ...answer }).is).toBe(is)
})
