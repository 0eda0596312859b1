// The catalogue is whole: every control has a probe that guards it, every probe a number and a name of its own.
import { describe, expect, test } from 'vitest'
import { catalogue } from '../../src/verify/catalogue.ts'
import { containerArms } from '../../src/verify/arms/container-arms.ts'
import { type ControlId, controlOf, controls } from '../../src/verify/arms/controls.ts'

const ids = Object.keys(controls) as ControlId[]

/** Probes of the research, each of which has a number of its own; those above are of controls that it does not name. */
const researched = 111

describe('every control is guarded', () => {
  test.each(ids)('%s', (id) => {
    const guards = catalogue.filter(({ control }) => control === id)
    expect(guards.map((probe) => probe.id)).not.toEqual([])
  })
})

test.each(ids)('a launch without %s can be made', (id) => {
  const { without, around } = controlOf(id).arm
  expect(without ?? around).toBeTypeOf('function')
})

test('a container without each of them can be made, but for what is around it, and what an engine has in its place', () => {
  const without = ids.filter((id) => !Object.hasOwn(containerArms, id))
  const around = [
    'denials',
    'mount-targets',
    'code-apart',
    'protected-names',
    'patterns',
    'addresses',
    'spoken-names',
    'budgets',
    'placeholders',
    'told',
    'doors',
    'network-mode',
    'variables',
    'output',
    'end',
  ]
  const ofTheEngine = ['never-root', 'staging']
  expect(without.toSorted()).toEqual([...around, ...ofTheEngine].toSorted())
  for (const id of around) expect(controlOf(id as ControlId).arm.around, id).toBeTypeOf('function')
})

test('numbers and names are each one probe’s, and no number of the research is missing', () => {
  const numbers = catalogue.map(({ number }) => number)
  expect(new Set(catalogue.map(({ id }) => id)).size).toBe(numbers.length)
  expect(numbers).toEqual(Array.from({ length: catalogue.length }, (_, index) => index + 1))
  expect(numbers.length).toBeGreaterThanOrEqual(researched)
})
