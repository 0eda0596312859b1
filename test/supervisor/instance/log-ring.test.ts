import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LogRing } from '../../../src/supervisor/instance/log-ring.ts'

const cutMark = '[the beginning of this line is left out] '

test('the newest bytes are kept, the others are counted', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 40 })),
      fc.integer({ min: 1, max: 64 }),
      (chunks, limit) => {
        const ring = new LogRing(limit)
        for (const chunk of chunks) ring.append(Buffer.from(chunk))
        const all = chunks.join('')
        const dropped = Math.max(0, all.length - limit)
        const expected = all.slice(-limit).split('\n')
        if (expected.at(-1) === '') expected.pop()
        expect(ring.last(1000)).toEqual({ lines: expected, dropped })
        expect(ring.last(2)).toEqual({ lines: expected.slice(-2), dropped })
        const ended = all.slice(-limit).split('\n').slice(0, -1)
        expect(ring.last(3, 'ended')).toEqual({ lines: ended.slice(-3), dropped })
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
  expect(ring.last(9)).toEqual({ lines: ['2', '3'], dropped: 2 })
  ring.append(Buffer.from('4\n'))
  ring.resize(100)
  ring.append(Buffer.from('5\n'))
  expect(ring.last(9).lines).toEqual(['3', '4', '5'])
  expect(heard).toEqual(['1', '2', '3', '4', '5'])
})

test('the last lines are the last ones, oldest first', () => {
  const ring = new LogRing(1000)
  ring.append(Buffer.from('1\n2\n3\n4\n'))
  expect(ring.last(2).lines).toEqual(['3', '4'])
  expect(ring.last(0).lines).toEqual([])
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
  expect(ring.last(9, 'ended').lines).toEqual(['before'])
  expect(ring.last(9).lines).toEqual(['before', 'beg'])
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
  expect(heard).toEqual([`${cutMark}${'x'.repeat(65_536)}end`])
  ring.append(Buffer.from('next\n'))
  expect(heard.at(-1)).toBe('next')
})

describe('what is told at once has room in an answer', () => {
  const answerOf = (told: object): number => Buffer.byteLength(JSON.stringify(told))
  const mostBytes = 8 * 1024 * 1024

  test('whatever its bytes become in JSON: the newest lines that fit, and the others are counted', () => {
    const ring = new LogRing(4_000_000)
    const lines = Array.from({ length: 3000 }, (_, n) => `${'\u0001'.repeat(1000)}${n}`)
    for (const line of lines) ring.append(Buffer.from(`${line}\n`))
    const told = ring.last(100_000)
    expect(answerOf(told)).toBeLessThan(mostBytes + 100)
    expect(answerOf(told)).toBeGreaterThan(mostBytes - 10_000)
    expect(told.lines).toEqual(lines.slice(-told.lines.length))
    const left = lines.slice(0, -told.lines.length)
    expect(told.dropped).toBe(left.reduce((sum, { length }) => sum + length + 1, 0))
    expect(ring.last(10)).toEqual({ lines: lines.slice(-10), dropped: 0 })
  })

  test.each([2_000_000, 9_000_000])('a line of %d bytes by its end, behind a word that says so', (bytes) => {
    const ring = new LogRing(20_000_000)
    ring.append(Buffer.from(`before\n${'\u0001'.repeat(bytes)}end\n`))
    const told = ring.last(1)
    expect(told.lines).toEqual([`${cutMark}${'\u0001'.repeat(1_048_573)}end`])
    expect(answerOf(told)).toBeLessThan(mostBytes)
    ring.append(Buffer.from('after\n'))
    const isNear = bytes < mostBytes
    expect(ring.last(3).lines).toEqual([...(isNear ? ['before', ...told.lines] : []), 'after'])
    const heard: string[] = []
    ring.listen((line) => heard.push(line))
    ring.append(Buffer.from(`${'x'.repeat(bytes)}end\n`))
    expect(heard).toEqual([`${cutMark}${'x'.repeat(1_048_573)}end`])
  })
})

test('to tell the last lines of much takes about as long as of little', () => {
  const line = Buffer.from(`${'x'.repeat(99)}\n`)
  const [little, much] = [new LogRing(1_000_000), new LogRing(200_000_000)]
  little.append(Buffer.alloc(1_000_000, line))
  much.append(Buffer.alloc(200_000_000, line))
  const lookAt = (ring: LogRing): number => {
    const began = performance.now()
    for (let n = 0; n < 20; n += 1) expect(ring.last(10).lines).toHaveLength(10)
    return performance.now() - began
  }
  lookAt(little)
  // All of it in text, as often, would take two hundred times as long.
  expect(lookAt(much)).toBeLessThan(20 * lookAt(little) + 200)
})
