// Whoever waits for the thread that judges arguments is let in by the time that it has had.
import { expect, test } from 'vitest'
import { ArgumentQueue } from '../../src/schema/argument-queue.ts'

const queueOf = (...all: readonly string[]) => {
  const queue = new ArgumentQueue<{ server: string; principal: string }>()
  for (const one of all) {
    const [principal = '', server = ''] = one.split('/')
    queue.add({ principal, server })
  }
  const next = (ms: number): string | null => {
    const asked = queue.next()
    if (asked === null) return null
    queue.done(asked, ms)
    return `${asked.principal}/${asked.server}`
  }
  return { queue, next }
}

test('the servers of one principal take turns', () => {
  const { next } = queueOf('1/a', '1/a', '1/b', '1/a', '1/c')
  expect(Array.from({ length: 6 }, () => next(1))).toEqual(['1/a', '1/b', '1/c', '1/a', '1/a', null])
})

test('what is taken as the rest leaves nothing in the way of what comes then', () => {
  const { queue, next } = queueOf('1/a', '1/a', '2/b')
  expect(next(1)).toBe('1/a')
  expect(queue.rest()).toHaveLength(2)
  queue.add({ principal: '1', server: 'c' })
  expect([next(1), next(1)]).toEqual(['1/c', null])
})

test('whoever comes later begins with what the others have had, and has saved up nothing', () => {
  const { queue, next } = queueOf('1/a', '1/a', '1/a')
  expect([next(500), next(500)]).toEqual(['1/a', '1/a'])
  queue.add({ principal: '2', server: 'b' })
  queue.add({ principal: '2', server: 'b' })
  queue.add({ principal: '2', server: 'b' })
  expect([next(600), next(600), next(600), next(0)]).toEqual(['2/b', '1/a', '2/b', '2/b'])
})
