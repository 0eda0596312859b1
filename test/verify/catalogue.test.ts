// The catalogue is whole: every control has a probe that guards it, every probe a number and a name of its own.
import { describe, expect, test } from 'vitest'
import { catalogue } from '../../src/verify/catalogue.ts'
import { type ControlId, controlOf, controls } from '../../src/verify/controls.ts'

const ids = Object.keys(controls) as ControlId[]

/** Numbers of the research that no probe has yet, and why. */
const missing: Readonly<Record<number, string>> = {
  19: 'takes a setuid program that tells its euid; probes 8 and 67 hold the flags that stop it',
  70: 'takes a program with file capabilities; probes 67 and 69 hold what stops it',
  102: 'a share of a processor is only seen by measuring time',
  104: 'a flood of output is the supervisor’s to hold, not the sandbox’s',
  108: 'a call that never ends is the supervisor’s to end',
  111: 'the host’s processors and load are to be seen in every sandbox',
}

describe('every control is guarded', () => {
  test.each(ids)('%s', (id) => {
    const guards = catalogue.filter(({ control }) => control === id)
    expect(guards.map((probe) => probe.id)).not.toEqual([])
  })
})

test('a control that cannot be taken out says why', () => {
  for (const id of ids) {
    const { arm } = controlOf(id)
    if (arm.without === null) expect(arm.reason, id).toMatch(/\w{3}/)
  }
})

test('numbers and names are each one probe’s, and every number is a probe’s or has a reason', () => {
  const numbers = catalogue.map(({ number }) => number)
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(new Set(catalogue.map(({ id }) => id)).size).toBe(numbers.length)
  const all = [...numbers, ...Object.keys(missing).map(Number)].toSorted((one, other) => one - other)
  expect(all).toEqual(Array.from({ length: 111 }, (_, index) => index + 1))
})
