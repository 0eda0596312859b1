// Whose turn it is at a server that works on some calls at once.
import { afterEach, describe, expect, test } from 'vitest'
import { Turns } from '../../src/call/turns.ts'
import type { InstanceId } from '../../src/lib/ids.ts'
import type { Turn } from '../../src/schema/governor.ts'
import type { ServerSettings } from '../../src/schema/settings.ts'
import { eventually } from '../support/eventually.ts'
import { serverOf } from '../support/settings.ts'

const server = (maxConcurrent: number, more: Partial<ServerSettings> = {}): ServerSettings =>
  serverOf({ name: 'files', maxConcurrent, ...more })
const taker = {
  kind: 'tool',
  subject: 'read_file',
  instance: 'i-1' as InstanceId,
  principal: '1000',
  session: 's-1',
  peer: { uid: 1000, gid: 1000, pid: 1 },
} as const
/** A turn, at once or when it comes. */
function take(
  turns: Turns,
  at: ServerSettings,
  its: object = {},
  waiting: { readonly signal: AbortSignal } = never,
): Promise<Turn> | Turn {
  const who = { ...taker, ...its }
  const free = turns.take(at, who)
  if (free !== null) return free
  const waits = new Promise<Turn>((given, refused) => turns.wait(at, who, waiting, { given, refused }))
  waits.catch(() => undefined) // of one that is called off when its test is over
  return waits
}

let over = new AbortController()
const never = {
  get signal() {
    return over.signal
  },
}
// A wait that nobody ends is none of the next test's.
afterEach(() => {
  over.abort(new Error('the test is over'))
  over = new AbortController()
})

/** What has become of it once everything else of this turn is over. */
async function now<T>(promise: Promise<T> | T): Promise<T | 'waits'> {
  await new Promise(setImmediate)
  return Promise.race([promise, Promise.resolve('waits' as const)])
}

describe('a server that works on two calls at once', () => {
  test('has a turn for two at once, and for the next when one ends, in the order of coming', async () => {
    const turns = new Turns()
    const had: string[] = []
    const begin = (name: string): Promise<Turn> | Turn => {
      const turn = take(turns, server(2))
      if (turn instanceof Promise) turn.then(() => had.push(name)).catch(() => undefined)
      else had.push(name)
      return turn
    }
    const [first, second] = [begin('a'), begin('b')] as [Turn, Turn]
    const later = ['c', 'd', 'e'].map(begin) as readonly Promise<Turn>[]
    await now(null)
    expect(had).toEqual(['a', 'b'])
    second.end()
    await now(null)
    expect(had).toEqual(['a', 'b', 'c'])
    first.end()
    ;(await later[0])?.end()
    await now(null)
    expect(had).toEqual(['a', 'b', 'c', 'd', 'e'])
    for (const turn of await Promise.all(later.slice(1))) turn.end()
    expect([begin('f'), begin('g')].some((turn) => turn instanceof Promise)).toBe(false)
    expect(begin('h')).toBeInstanceOf(Promise)
  })

  test('lets connections take turns, each in its own order', async () => {
    const turns = new Turns()
    const had: string[] = []
    const shared = server(1)
    const peers = { a: { ...taker.peer }, b: { ...taker.peer } }
    let turn = take(turns, shared) as Turn
    const asked = ['a1', 'a2', 'a3', 'b1', 'b2'].map((name) =>
      Promise.resolve(take(turns, shared, { peer: peers[name.slice(0, 1) as 'a' | 'b'] })).then((its) => {
        had.push(name)
        return its
      }),
    )
    for (const _ of asked) {
      turn.end()
      await now(null)
      turn = (await asked[['a1', 'a2', 'a3', 'b1', 'b2'].indexOf(had.at(-1) ?? '')]) as Turn
    }
    expect(had).toEqual(['a1', 'b1', 'a2', 'b2', 'a3'])
  })

  test('keeps nothing of a wait that is called off: the next one has its turn', async () => {
    const turns = new Turns()
    const turn = take(turns, server(1)) as Turn
    const controller = new AbortController()
    const gone = take(turns, server(1), {}, controller) as Promise<Turn>
    const next = take(turns, server(1)) as Promise<Turn>
    controller.abort(new Error('the caller has left'))
    await expect(gone).rejects.toThrow('the caller has left')
    expect(await now(next)).toBe('waits')
    turn.end()
    expect(await now(next)).not.toBe('waits')
    const late = take(turns, server(1), {}, controller) as Promise<Turn>
    await expect(late).rejects.toThrow('the caller has left')
  })

  test('refuses whoever has waited for call_ms, by name', async () => {
    const turns = new Turns()
    const hasty = server(1, { timeouts: { initializeMs: 1000, callMs: 30, idleMs: 0 } })
    const turn = take(turns, hasty) as Turn
    await expect(take(turns, hasty)).rejects.toMatchObject({
      code: 'ERR_BUSY',
      message:
        'files read_file was not called: its turn did not come within 30 ms (timeouts.call_ms), and max_concurrent is 1; call again, or fewer at once',
    })
    turn.end()
    expect(take(turns, hasty)).not.toBeInstanceOf(Promise)
  })
})

test('every process has turns of its own; where each call has one, every principal', () => {
  const isFree = (turns: Turns, its: ServerSettings, change: Partial<typeof taker | object>): boolean =>
    turns.take(its, { ...taker, ...change }) !== null
  const turns = new Turns()
  expect(isFree(turns, server(1), {})).toBe(true)
  expect(isFree(turns, server(1), { instance: 'i-2', session: 's-2' })).toBe(true)
  const own = server(1, { instance: 'call' })
  expect(isFree(turns, own, { principal: '7' })).toBe(true)
  expect(isFree(turns, own, { principal: '7', instance: 'i-3', session: 's-3' })).toBe(false)
  expect(isFree(turns, own, { principal: '8' })).toBe(true)
  expect(isFree(turns, { ...own, name: 'other' }, { principal: '7' })).toBe(true)
})

test('another number holds from the next call on: whoever waits comes before it, or has no turn where there are fewer', async () => {
  const turns = new Turns()
  const first = take(turns, server(1)) as Turn
  const [second, third] = [take(turns, server(1)), take(turns, server(1))]
  const fourth = take(turns, server(3))
  expect(fourth).toBeInstanceOf(Promise)
  const [its, others] = await Promise.all([second, third])
  expect(await now(fourth)).toBe('waits')
  const fifth = take(turns, server(1))
  first.end()
  its.end()
  expect(await now(fourth)).toBe('waits')
  others.end()
  ;(await fourth).end()
  ;(await fifth).end()
  expect(take(turns, server(1))).not.toBeInstanceOf(Promise)
})

test('thousands who end their turns as soon as they are given them have them one after the other', async () => {
  const turns = new Turns()
  const one = server(1)
  const first = turns.take(one, taker)
  let [given, tooMany] = [0, 0]
  const asker = {
    given: (turn: Turn): void => {
      given += 1
      tooMany += Number(turns.take(one, taker) !== null)
      turn.end()
      tooMany += Number(given < 10_000 && turns.take(one, taker) !== null)
      turn.end() // which is nothing
    },
    refused: () => undefined,
  }
  for (let n = 0; n < 10_000; n++) {
    const { signal } = new AbortController()
    turns.wait(one, { ...taker, principal: String(n % 4) }, { signal }, asker)
  }
  first?.end()
  await eventually(() => given === 10_000)
  expect(tooMany).toBe(0)
  expect(turns.take(one, taker)).not.toBeNull()
  expect(turns.take(one, taker)).toBeNull()
})

const atOnce = (end: () => void): void => end()
const byPromise = (end: () => void): void => void Promise.resolve().then(end)

test.each([
  [8, 'at once', atOnce],
  [25, 'at once', atOnce],
  [8, 'by a promise', byPromise],
  [25, 'by a promise', byPromise],
])(
  'connections that are handed turns of %i ms, and end them %s, leave others turns of the event loop, and each other theirs',
  async (eachMs, _, later) => {
    const turns = new Turns()
    const first = turns.take(server(1), taker)
    const given: number[] = []
    const peers = [{ ...taker.peer }, { ...taker.peer }]
    for (let n = 0; n < 20; n++) {
      const slowly = (turn: Turn): void => {
        given.push(n)
        for (const end = performance.now() + eachMs; performance.now() < end;);
        later(() => turn.end())
      }
      const [peer = taker.peer] = n < 10 ? peers : peers.slice(1)
      turns.wait(
        server(1),
        { ...taker, peer },
        { signal: new AbortController().signal },
        { given: slowly, refused: () => undefined },
      )
    }
    let loops = 0
    const count = (): void => {
      loops += 1
      if (given.length < 20) setImmediate(count)
    }
    first?.end()
    count()
    await Promise.resolve()
    expect(given.length).toBeLessThan(10)
    expect(turns.take(server(1), taker)).toBeNull()
    while (given.length < 20) await new Promise(setImmediate)
    expect(loops).toBeGreaterThan(5)
    expect(given).toEqual(Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? n / 2 : 10 + (n - 1) / 2)))
    await new Promise(setImmediate)
    expect(turns.take(server(1), taker)).not.toBeNull()
  },
)

test('a bug in what is done with a turn takes no turn from others', async () => {
  const turns = new Turns()
  const { signal } = new AbortController()
  const [first, second] = [take(turns, server(2)), take(turns, server(2))] as [Turn, Turn]
  const fails = (): never => {
    throw new Error('a bug')
  }
  turns.wait(server(2), taker, { signal }, { given: fails, refused: () => undefined })
  const next = take(turns, server(2)) as Promise<Turn>
  expect(() => first.end()).toThrow('a bug')
  second.end()
  expect(await now(next)).not.toBe('waits')
})

test('one principal may have 4096 calls waiting, whatever for, and another as many', async () => {
  const turns = new Turns()
  const [one, other] = [server(1), server(1, { name: 'other' })]
  void take(turns, one)
  void take(turns, other, { instance: 'i-2', session: 's-2' })
  const [back, ...rest] = Array.from({ length: 4096 }, () => new AbortController())
  for (const controller of [back, ...rest]) void take(turns, one, {}, controller)
  const late = take(turns, other, { instance: 'i-2', session: 's-2' })
  await expect(late).rejects.toMatchObject({
    code: 'ERR_BUSY',
    message:
      'other read_file was not called: 4096 calls of uid 1000 wait for their turn already; call again when some are answered',
  })
  expect(await now(take(turns, other, { instance: 'i-2', session: 's-2', principal: '7' }))).toBe('waits')
  back?.abort(new Error('taken back'))
  expect(await now(take(turns, other, { instance: 'i-2', session: 's-2' }))).toBe('waits')
})

test('what is no call of a tool takes no turn', () => {
  const turns = new Turns()
  for (let n = 0; n < 3; n++) expect(take(turns, server(1), { kind: 'method' })).not.toBeInstanceOf(Promise)
  expect(take(turns, server(1))).not.toBeInstanceOf(Promise)
})
