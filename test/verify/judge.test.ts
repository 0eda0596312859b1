// A verdict is a pass only where the attempt was made, was stopped as expected, and is known to be open without the control.
import { describe, expect, test } from 'vitest'
import { type Answer, seen, stops } from '../../src/verify/attempt.ts'
import { type Findings, judge } from '../../src/verify/judge.ts'
import type { Probe, Trial } from '../../src/verify/probe.ts'

const trial: Trial = { expected: 'EPERM', attempts: [stops(['one'], ['EPERM']), stops(['two'], ['EPERM'])] }
const probe: Probe = {
  id: 'syscalls.it',
  number: 1,
  group: 'syscalls',
  protects: 'It.',
  control: 'seccomp',
  trial: () => trial,
}
const answers = (...outcomes: string[]): Answer[] => outcomes.map((outcome) => ({ outcome, text: '', ms: 1 }))
const judged = (more: Partial<Findings>): ReturnType<typeof judge> =>
  judge({
    probe,
    trial,
    inside: answers('EPERM', 'EPERM'),
    outside: answers('open', 'open'),
    arm: null,
    isSelfCheck: false,
    isStrict: false,
    spec: { network: { mode: 'none' } },
    driver: 'bubblewrap',
    ...more,
  })

test('shut inside and open outside is a pass, and says by what', () => {
  expect(judged({})).toMatchObject({
    verdict: 'pass',
    observed: 'EPERM',
    errno: 'EPERM',
    layer: 'filter',
    positiveControl: { isOpen: true },
    brokenArm: null,
    durationMs: 2,
  })
})

describe('is a failure', () => {
  test('what is open inside, be it one attempt of many', () => {
    expect(judged({ inside: answers('EPERM', 'open') })).toMatchObject({
      verdict: 'fail',
      observed: 'two: open',
    })
  })

  test('what is stopped by something else than was expected', () => {
    expect(judged({ inside: answers('ENOENT', 'EPERM') })).toMatchObject({
      verdict: 'fail',
      detail: 'shut, and not as expected',
      layer: null,
    })
  })
})

describe('is an error, never a pass', () => {
  test.each(['unknown', 'late', 'no-effect'])('what could not be tried: %s', (outcome) => {
    expect(judged({ inside: answers('EPERM', outcome) }).verdict).toBe('error')
  })

  test('what was not answered', () => {
    expect(judged({ inside: answers('EPERM') }).verdict).toBe('error')
    expect(judged({ inside: [] }).verdict).toBe('error')
  })

  test('a probe with nothing to try', () => {
    expect(judged({ trial: { ...trial, attempts: [] } }).verdict).toBe('error')
  })

  test('what is open neither outside nor without its control, with what was seen there', () => {
    const outside = answers('EPERM', 'EPERM')
    expect(judged({ outside }).verdict).toBe('error')
    expect(judged({ outside, arm: { answers: answers('EPERM', 'EPERM') } })).toMatchObject({
      verdict: 'error',
      positiveControl: { observed: 'outside: EPERM; in the sandbox without seccomp: EPERM', isOpen: false },
    })
    expect(judged({ outside, arm: { refused: 'no room' } })).toMatchObject({
      verdict: 'error',
      positiveControl: { observed: 'outside: EPERM; in the sandbox without seccomp: refused: no room' },
    })
    expect(judged({ outside, arm: { answers: answers('EPERM', 'open') } }).verdict).toBe('pass')
  })

  test('a self-check in which it stays green, or whose sandbox does not come up', () => {
    const isSelfCheck = true
    expect(judged({ isSelfCheck, arm: { answers: answers('open', 'open') } }).verdict).toBe('pass')
    expect(judged({ isSelfCheck, arm: { answers: answers('EPERM', 'EPERM') } }).verdict).toBe('error')
    expect(judged({ isSelfCheck, arm: { refused: 'no such option' } }).verdict).toBe('error')
  })
})

describe('what was to come and did not', () => {
  const coming = seen(
    'an end',
    () => Promise.resolve(''),
    () => null,
  )
  const at = (ms: number, outcome: string): Answer[] => [{ outcome, text: 'it goes on', ms }]
  const ending = { ...trial, attempts: [coming], outside: [stops(['one'], [])] }
  const found = (more: Partial<Findings>): ReturnType<typeof judge> =>
    judged({ trial: ending, isSelfCheck: true, ...more })

  test('is an error that says so', () => {
    expect(found({ inside: at(30_000, 'late') })).toMatchObject({
      verdict: 'error',
      observed: 'an end: it goes on',
    })
  })

  test('is red without its control where it came far sooner with it, and nothing where that took as long', () => {
    const arm = { answers: at(6000, 'late') }
    expect(found({ inside: at(800, 'open'), arm })).toMatchObject({
      verdict: 'pass',
      brokenArm: { isRed: true, observed: 'an end: it goes on' },
    })
    expect(found({ inside: at(4000, 'open'), arm })).toMatchObject({
      verdict: 'error',
      brokenArm: { isRed: false },
    })
  })
})

describe('what the sandbox has nothing of', () => {
  const inapplicable = { because: 'there is none', where: 'elsewhere' }
  const absent = { trial: { ...trial, outside: [], inapplicable }, outside: [] }

  test('does not apply, and is never a pass: with the reason, whether it was tried or there is nothing to try', () => {
    const detail = 'there is none; it applies elsewhere'
    const nothing = { verdict: 'not-applicable', detail, layer: null, positiveControl: null, brokenArm: null }
    expect(judged(absent)).toMatchObject({ ...nothing, observed: 'EPERM' })
    const untried = { trial: { ...absent.trial, attempts: [] }, inside: [], outside: [] }
    expect(judged(untried)).toMatchObject({ ...nothing, observed: 'nothing of the kind', evidence: [] })
  })

  test('is a failure where it is there all the same, and an error where nobody could look', () => {
    expect(judged({ ...absent, inside: answers('EPERM', 'open') }).verdict).toBe('fail')
    expect(judged({ ...absent, inside: answers('EPERM') }).verdict).toBe('error')
  })
})

describe('what nothing here holds', () => {
  const open = { trial: { ...trial, outside: [], unenforced: 'no control group' }, outside: [] }

  test('is not enforced, however the attempt ended, and says what was seen', () => {
    const found = judged({ ...open, inside: answers('EPERM', 'open') })
    expect(found).toMatchObject({
      verdict: 'not-enforced',
      observed: 'two: open',
      detail: 'no control group',
      layer: null,
      positiveControl: null,
    })
    expect(judged(open).verdict).toBe('not-enforced')
  })

  test('is a failure to whoever is strict, and an error where it was not tried', () => {
    expect(judged({ ...open, isStrict: true })).toMatchObject({ verdict: 'fail', detail: 'no control group' })
    expect(judged({ ...open, inside: answers('EPERM') }).verdict).toBe('error')
    expect(judged({ ...open, trial: { ...open.trial, attempts: [] } }).verdict).toBe('error')
  })
})

test('a sandbox that must not come up without a control is red by that, and green by coming up', () => {
  const refusing: Probe = { ...probe, control: 'pid-namespace' }
  const isSelfCheck = true
  const refused = 'sallyport-init: init: pid: not 1: init runs as the first process of a pid namespace only'
  expect(judged({ probe: refusing, isSelfCheck, arm: { refused } }).verdict).toBe('pass')
  const came = judged({ probe: refusing, isSelfCheck, arm: { answers: answers('open', 'open') } })
  expect(came).toMatchObject({ verdict: 'error', brokenArm: { isRed: false } })
})

test.each([
  'the sandbox did not report ready within 10000 ms; see whether the machine is overloaded',
  'the launcher of probes could not be started: Error: spawn EAGAIN',
  'bwrap: Creating new namespace failed: Resource temporarily unavailable',
])('a sandbox that must not come up shows nothing by not coming up otherwise: %s', (refused) => {
  const found = judged({
    probe: { ...probe, control: 'pid-namespace' },
    isSelfCheck: true,
    arm: { refused },
  })
  expect(found).toMatchObject({
    verdict: 'error',
    detail: `without pid-namespace there was no sandbox to try it in: ${refused}`,
  })
})
