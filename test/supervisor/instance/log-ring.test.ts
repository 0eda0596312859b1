import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LogRing } from '../../../src/supervisor/instance/log-ring.ts'

test('the newest bytes are kept, the others are counted', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 40 })),
      fc.integer({ min: 1, max: 64 }),
      (chunks, limit) => {
        const ring = new LogRing(limit)
        for (const chunk of chunks) ring.append(Buffer.from(chunk))
        const all = chunks.join('')
        expect(ring.dropped).toBe(Math.max(0, all.length - limit))
        const expected = all.slice(-limit).split('\n')
        if (expected.at(-1) === '') expected.pop()
        expect(ring.lines(1000)).toEqual(expected)
      },
    ),
  )
})

test('a listener gets whole lines until it stops listening', () => {
  const ring = new LogRing(10)
  const heard: string[] = []
  const stop = ring.listen((line) => heard.push(line))
  ring.append(Buffer.from('on'))
  ring.append(Buffer.from('e\ntwo\nthr'))
  stop()
  ring.append(Buffer.from('ee\n'))
  expect(heard).toEqual(['one', 'two'])
})

test('another limit keeps the newest of what there is, and those who listen', () => {
  const ring = new LogRing(1000)
  const heard: string[] = []
  ring.listen((line) => heard.push(line))
  ring.append(Buffer.from('1\n2\n3\n'))
  ring.resize(4)
  expect([ring.lines(9), ring.dropped]).toEqual([['2', '3'], 2])
  ring.append(Buffer.from('4\n'))
  ring.resize(100)
  ring.append(Buffer.from('5\n'))
  expect(ring.lines(9)).toEqual(['3', '4', '5'])
  expect(heard).toEqual(['1', '2', '3', '4', '5'])
})

test('the last lines are the last ones, oldest first', () => {
  const ring = new LogRing(1000)
  ring.append(Buffer.from('1\n2\n3\n4\n'))
  expect(ring.lines(2)).toEqual(['3', '4'])
  expect(ring.lines(0)).toEqual([])
})

test('a character that came in two chunks is told as it is', () => {
  const ring = new LogRing(1000)
  const heard: string[] = []
  ring.listen((line) => heard.push(line))
  const bytes = Buffer.from('größer ⚓\n')
  for (const byte of bytes) ring.append(Buffer.from([byte]))
  expect(heard).toEqual(['größer ⚓'])
})

test('a line that was begun before anybody listened is told whole, once it has ended, and not before', () => {
  const ring = new LogRing(1000)
  const heard: string[] = []
  ring.append(Buffer.from('before\nbeg'))
  expect(ring.lines(9, 'ended')).toEqual(['before'])
  expect(ring.lines(9)).toEqual(['before', 'beg'])
  const stop = ring.listen((line) => heard.push(line))
  ring.append(Buffer.from('un\nhalf'))
  stop()
  ring.append(Buffer.from(' and half'))
  ring.listen((line) => heard.push(line))
  ring.append(Buffer.from(', ended\n'))
  expect(heard).toEqual(['begun', 'half and half, ended'])
})

test('of a line without end no more than its last 64 KiB are kept for who listens', () => {
  const ring = new LogRing(1000)
  const heard: string[] = []
  ring.listen((line) => heard.push(line))
  for (let n = 0; n < 5; n += 1) ring.append(Buffer.from('x'.repeat(30_000)))
  ring.append(Buffer.from('end\n'))
  expect(heard).toEqual([`${'x'.repeat(65_536)}end`])
})
