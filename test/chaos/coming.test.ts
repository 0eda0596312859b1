import { expect, test } from 'vitest'
import { chosenOf, Coming } from './coming.ts'
import { faults } from './faults.ts'
import { verdict } from './verdict.ts'

const all = Object.keys(faults)
const told = { seed: '7', seconds: 60, only: 'guard', plant: false }
const guards = all.filter((name) => name.includes('guard'))
const [first = '', second = '', ...rest] = guards

test('a run is to have all faults, or those with one of its words in their names', () => {
  expect(chosenOf(null)).toEqual(all)
  expect(chosenOf('guard')).toEqual(guards)
  expect(chosenOf('guard, SIGHUP')).toEqual(all.filter((name) => /guard|SIGHUP/.test(name)))
})

test.each(['nothinglikeit', 'guard,nothinglikeit', '', 'guard,'])('%j is a word of no fault', (only) => {
  const strange = only.replace('guard,', '')
  expect(() => chosenOf(only)).toThrow(
    `--only ${strange}: in no fault’s name; use words of these: ${all[0]}, `,
  )
})

test('the last lines tell which faults never came, and which befell nobody', () => {
  const coming = new Coming('guard')
  coming.note(first, true)
  coming.note(first, false)
  coming.note(second, false)
  expect(coming.inWords()).toBe(
    `faults that came: 1 of ${guards.length}; befell nobody: ${second}; never came: ${rest.join(', ')}`,
  )
  const { lines, status } = verdict([], coming, told)
  expect(lines).toEqual([coming.inWords(), expect.stringMatching(/^all \d+ invariants held; seed 7$/)])
  expect(status).toBe(0)
})

test('of faults that all came nothing more is told', () => {
  const coming = new Coming('guard')
  for (const name of guards) coming.note(name, true)
  expect(coming.inWords()).toBe(`faults that came: ${guards.length} of ${guards.length}`)
})

test('a run in which no fault befell anybody proves nothing, unless it broke something', () => {
  const coming = new Coming('guard')
  coming.note(first, false)
  const { lines, status } = verdict([], coming, told)
  expect(lines.at(-1)).toBe(
    "nothing is proven: no fault befell anybody; again with --seed 7 --seconds 60 --only 'guard'",
  )
  expect(status).toBe(2)
  const broken = [{ invariant: 'flat', detail: 'it grew' }] as const
  expect(verdict(broken, coming, told)).toMatchObject({
    lines: [
      coming.inWords(),
      expect.stringContaining('BROKEN flat: '),
      expect.stringContaining('1 invariant broken; '),
    ],
    status: 1,
  })
})
