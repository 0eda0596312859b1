// One step of many at once.
import { expect, test } from 'vitest'
import { Together } from '../../src/lib/together.ts'

test('the step is taken for all of a turn, in their order, behind the turn’s own work', async () => {
  const [first, second] = [new Together(), new Together()]
  const done: string[] = []
  for (const name of ['a', 'b', 'c'])
    first.add(() => {
      done.push(`first ${name}`)
      second.add(() => done.push(`second ${name}`))
    })
  done.push('the turn')
  await Promise.resolve()
  await Promise.resolve()
  expect(done).toEqual([
    'the turn',
    ...['first', 'second'].flatMap((n) => ['a', 'b', 'c'].map((m) => `${n} ${m}`)),
  ])
})

test('who needs to know what came of it has it taken at once, and it is taken once', async () => {
  const steps = new Together()
  const done: number[] = []
  steps.add(() => done.push(1))
  steps.now()
  expect(done).toEqual([1])
  steps.add(() => done.push(2))
  await Promise.resolve()
  expect(done).toEqual([1, 2])
})

test('a step that fails keeps no other of its turn from being taken, and the first failure is told', () => {
  const steps = new Together()
  const done: string[] = []
  for (const name of ['a', 'b', 'c', 'd'])
    steps.add(() => {
      if (name === 'b' || name === 'c') throw new Error(name)
      done.push(name)
    })
  expect(() => steps.now()).toThrow('b')
  expect(done).toEqual(['a', 'd'])
  steps.now()
  expect(done).toEqual(['a', 'd'])
})
