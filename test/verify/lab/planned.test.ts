// What a launch that is only planned says of the rule that it is to be refused by.
import { expect, test } from 'vitest'
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
])('is %s', (_, meaning, is, observed) => {
  expect(meaning).toEqual({ is, observed, errno: null })
})
