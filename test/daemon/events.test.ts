// The event log: in order, once each, nobody's events to others, and a word where some are gone.
import { expect, it } from 'vitest'
import { EventLog } from '../../src/daemon/events.ts'
import type { SallyportEvent } from '../../src/rpc/protocol.ts'
import type { Caller, Happening } from '../../src/supervisor/ports.ts'
import { living } from '../support/collect.ts'

const caller = (uid: number, role: Caller['role'] = 'host'): Caller => ({
  principal: { kind: 'uid', id: String(uid), attributes: { uid, gid: uid, pid: 1 } },
  role,
})
const happening = (type: string, principal: string | null = null): Happening => ({
  type,
  server: null,
  instance: null,
  principal,
  detail: {},
})

async function take(
  log: EventLog,
  who: Caller,
  since: number,
  count: number,
): Promise<readonly SallyportEvent[]> {
  const taken: SallyportEvent[] = []
  const stop = new AbortController()
  for await (const event of log.follow(who, since, stop.signal)) {
    taken.push(event)
    if (taken.length === count) break
  }
  return taken
}

it('a subscriber gets what came after `since`, then each event as it comes', async () => {
  const log = new EventLog()
  for (const type of ['a', 'b', 'c']) log.emit(happening(type))
  const taking = take(log, caller(1), 1, 4)
  log.emit(happening('d'))
  await new Promise((resolve) => setImmediate(resolve))
  log.emit(happening('e'))
  const events = await taking
  expect(events.map(({ seq, type }) => `${seq}${type}`)).toEqual(['2b', '3c', '4d', '5e'])
})

it('a host never sees an event of another principal, the operator sees all', async () => {
  const log = new EventLog()
  log.emit(happening('mine', '1'))
  log.emit(happening('theirs', '2'))
  log.emit(happening('everybody’s'))
  expect((await take(log, caller(1), 0, 2)).map(({ type }) => type)).toEqual(['mine', 'everybody’s'])
  expect((await take(log, caller(9, 'operator'), 0, 3)).map(({ type }) => type)).toEqual([
    'mine',
    'theirs',
    'everybody’s',
  ])
  expect(JSON.stringify(await take(log, caller(9, 'operator'), 0, 3))).not.toContain('principal')
})

it('a subscriber that was too slow is told how many it missed', async () => {
  const log = new EventLog(3)
  for (let i = 1; i <= 10; i++) log.emit(happening(`e${i}`))
  const events = await take(log, caller(1), 2, 4)
  expect(events.map(({ seq, type }) => `${seq}:${type}`)).toEqual(['7:events/lost', '8:e8', '9:e9', '10:e10'])
  expect(events[0]?.detail).toEqual({ count: 5 })
})

it('a follower ends with its signal', async () => {
  const log = new EventLog()
  const stop = new AbortController()
  const taking = (async () => {
    for await (const _event of log.follow(caller(1), 0, stop.signal)) expect.unreachable()
    return 'ended'
  })()
  stop.abort()
  expect(await taking).toBe('ended')
})

it('a subscriber keeps nothing of what it has read, however long it is subscribed', async () => {
  const stop = new AbortController()
  const log = new EventLog()
  const followed = log.follow(caller(1), 0, stop.signal)
  const read = async (count: number): Promise<number> => {
    for (let n = 0; n < count; n++) {
      const next = followed.next() // it waits
      log.emit(happening('x'))
      await next
    }
    return living()
  }
  const before = await read(10_000)
  expect((await read(50_000)) - before).toBeLessThan(4 * 1024 * 1024)
  const last = followed.next()
  stop.abort()
  expect(await last).toMatchObject({ done: true })
})

it.each([
  ['longer than an event has room for', (line: string) => line],
  ['as short as a name', (line: string) => line.slice(0, 100)],
])('the log keeps of a text that is %s what it tells of it, and not the line that it stood in', (_, cut) => {
  const log = new EventLog()
  const before = living()
  for (let n = 0; n < 20; n++) {
    const line = String.fromCharCode(97 + n).repeat(1024 * 1024)
    log.emit({ ...happening('session/refused'), detail: { method: cut(line) } })
  }
  expect(living() - before).toBeLessThan(4 * 1024 * 1024)
  expect(log.seq).toBe(20)
})
