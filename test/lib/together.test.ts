// One step of many at once.
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Together } from '../../src/lib/together.ts'
import { collect } from '../support/collect.ts'
import { turns } from '../support/turns.ts'

const standStill = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

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

test('steps that take long leave others their turns, and all are taken, in their order', async () => {
  const steps = new Together({ turnMs: 10 })
  const done: number[] = []
  const seen = turns()
  const turnOf: number[] = []
  for (let one = 0; one < 20; one++)
    steps.add(() => {
      standStill(5)
      turnOf.push(seen.count())
      done.push(one)
    })
  while (done.length < 20) await turn()
  seen.stop()
  expect(done).toEqual(Array.from({ length: 20 }, (_, one) => one))
  for (const one of new Set(turnOf)) expect(turnOf.filter((other) => other === one).length).toBeLessThan(3)
})

test('one that fails after its turn is told of as well, and who needs all has all of it', async () => {
  const told: unknown[] = []
  const steps = new Together({ turnMs: 10, failed: (thrown) => void told.push(thrown) })
  const done: number[] = []
  for (let one = 0; one < 12; one++)
    steps.add(() => {
      standStill(5)
      if (one === 9) throw new Error('nine')
      done.push(one)
    })
  await Promise.resolve()
  expect(done.length).toBeLessThan(3)
  steps.now()
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11])
  expect(told).toEqual([new Error('nine')])
  await turn()
  expect(done).toHaveLength(11)
})

test('who has one step waits for one of each other, however many those have', async () => {
  const steps = new Together({ turnMs: 1 })
  const done: string[] = []
  const add = (name: string, count: number): void => {
    for (let n = 0; n < count; n++)
      steps.add(() => {
        standStill(5)
        done.push(name)
      }, name)
  }
  add('a', 20)
  add('b', 6)
  add('c', 1)
  await turn()
  add('d', 1)
  while (done.length < 28) await turn()
  expect(done[0]).toBe('a')
  expect(done.indexOf('c')).toBeLessThan(8)
  expect(done.indexOf('d')).toBeLessThan(16)
  expect(done.lastIndexOf('b')).toBeLessThan(22)
})

test('steps that add others in their own turn have no turn more for that', async () => {
  const steps = new Together({ turnMs: 10 })
  const seen = turns()
  const turnOf: number[] = []
  const step = (): void => {
    standStill(5)
    turnOf.push(seen.count())
    if (turnOf.length <= 20) steps.add(step)
  }
  for (let one = 0; one < 20; one++) steps.add(step)
  while (turnOf.length < 40) await turn()
  seen.stop()
  for (const one of new Set(turnOf))
    expect(turnOf.filter((other) => other === one).length).toBeLessThanOrEqual(4)
})

test('a step that is taken is not kept, though its party always has others', async () => {
  const steps = new Together({ turnMs: 1 })
  const held: WeakRef<object>[] = []
  const taken: number[] = []
  const add = (): void => {
    const big = { bytes: Buffer.alloc(1024) }
    held.push(new WeakRef(big))
    steps.add(() => {
      standStill(big.bytes.length / 1024)
      if (taken.push(0) < 200) add()
    })
  }
  for (let n = 0; n < 8; n++) add()
  while (taken.length < 150) await turn()
  collect()
  await turn()
  expect(held.slice(0, 100).filter((one) => one.deref() !== undefined)).toEqual([])
})
