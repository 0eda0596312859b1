// What is expected of calls of other tables, by which of them this machine's kernel answers.
import { describe, expect, test } from 'vitest'
import { foreignCallProbes } from '../../src/verify/battery/foreign-calls.ts'
import type { ForeignCalls } from '../../src/verify/lab/foreign-calls.ts'
import type { Scene, Trial } from '../../src/verify/probe.ts'

const trialsWhere = (foreign: ForeignCalls): readonly (Trial | undefined)[] =>
  foreignCallProbes.map((probe) => probe.trial({ foreign } as Scene))

const answer = { text: '', ms: 0 }

describe.runIf(process.arch === 'x64')('on x64', () => {
  test('where the kernel has calls of i386, they show what is open outside', () => {
    for (const x32 of [true, false]) {
      const [ofX32, ofI386] = trialsWhere({ i386: true, x32 })
      expect(ofX32?.outside?.map(({ asks }) => asks)).toEqual([['foreign-architecture']])
      for (const trial of [ofX32, ofI386]) expect(trial).toMatchObject({ expected: 'killed' })
      for (const trial of [ofX32, ofI386]) expect(trial?.inapplicable).toBeUndefined()
    }
  })

  test('where it has x32 alone, that shows it, and i386 does not apply', () => {
    const [ofX32, ofI386] = trialsWhere({ i386: false, x32: true })
    expect(ofX32?.outside).toBeUndefined()
    expect(ofX32?.inapplicable).toBeUndefined()
    expect(ofI386?.inapplicable?.because).toBe('this kernel has no calls of i386')
  })

  test('where it has neither, neither applies, and a call that is answered all the same is a failure', () => {
    for (const trial of trialsWhere({ i386: false, x32: false })) {
      expect(trial?.inapplicable?.because).toMatch(
        /^this kernel has (no calls of i386|calls of no other table)$/,
      )
      const [attempt] = trial?.attempts ?? []
      expect(attempt?.meaning({ outcome: 'open', ...answer }).is).toBe('open')
      expect(attempt?.meaning({ outcome: trial?.expected ?? '', ...answer }).is).toBe('shut')
    }
  })
})
