// A sandbox that asks for much at once waits for its own turns: each turn of the daemon's loop begins one of its dear steps.
import { createHook } from 'node:async_hooks'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { collect, testDoor } from '../support/egress-door.ts'
import { eventually } from '../support/eventually.ts'
import { intercepted, until } from '../support/intercepted.ts'

const many = 40

/** Counts the turns of this process's event loop from here on. */
function turnsOfLoop(): Disposable & { readonly now: number } {
  let now = 0
  let next: NodeJS.Immediate
  const count = (): void => {
    now++
    next = setImmediate(count)
  }
  count()
  return {
    get now() {
      return now
    },
    [Symbol.dispose]: () => clearImmediate(next),
  }
}

const times = <T>(make: () => T): readonly T[] => Array.from({ length: many }, make)

test('connections that come together are judged at a turn each', async () => {
  using turns = turnsOfLoop()
  const judged: number[] = []
  await using it = await testDoor({
    grants: [{}],
    mayConnect: () => {
      judged.push(turns.now)
      return { open: false, reason: 'doors-shut' }
    },
  })
  const clients = times(() => it.says('SP1 connect '))
  const ready = turns.now + 3 * many
  await eventually(() => turns.now > ready)
  const ends = clients.map(collect)
  for (const client of clients) client.write('allowed.com 443\n')
  await Promise.all(ends)
  expect(judged).toHaveLength(many)
  expect(new Set(judged).size).toBe(many)
})

test('handshakes that come together begin at a turn each', async () => {
  await using at = await intercepted()
  using turns = turnsOfLoop()
  const begun: number[] = []
  // The clients speak no TLS: whoever begins a handshake is the daemon's end
  const hook = createHook({ init: (_, type) => void (type === 'TLSWRAP' && begun.push(turns.now)) })
  hook.enable()
  const clients = times(() => connect(at.port, '127.0.0.1').on('error', () => undefined))
  await eventually(() => begun.length >= many)
  hook.disable()
  for (const client of clients) client.destroy()
  expect(new Set(begun).size).toBe(many)
})

test('requests that come together begin at a turn each, and all are answered', async () => {
  using turns = turnsOfLoop()
  const dialled: number[] = []
  await using at = await intercepted({
    get dialling() {
      dialled.push(turns.now)
      return Promise.resolve()
    },
  })
  using _ = await at.lease()
  const clients: Socket[] = []
  for (let it = 0; it < many; it++) clients.push(await at.raw())
  const request = `GET / HTTP/1.1\r\nHost: ${at.authority}\r\nAuthorization: Bearer ${at.placeholder}\r\n\r\n`
  for (const client of clients) client.write(request)
  await Promise.all(clients.map((client) => until(client, '"method":"GET"')))
  expect(dialled).toHaveLength(many)
  expect(new Set(dialled).size).toBe(many)
})

test('of clients that left while they waited for their turns nothing is left, and nothing was dialled for them', async () => {
  await using at = await intercepted()
  const before = at.log.dialled
  const clients = times(() => connect(at.port, '127.0.0.1').on('error', () => undefined))
  await Promise.all(clients.map((client) => once(client, 'connect')))
  for (const client of clients) client.resetAndDestroy()
  await eventually(() => at.clients.size === 0 && at.served.size === 0)
  expect(at.log.dialled).toBe(before)
})
