// What servers have begun to say is kept of all of them together as far as there is room, and the oldest goes first.
import { expect, test } from 'vitest'
import { HalfLines } from '../../../src/supervisor/message/half-lines.ts'
import { attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { serverSettings } from '../../support/server-settings.ts'

function three() {
  const gone: string[] = []
  const named = (name: string) => ({ letGo: () => void gone.push(name) })
  return { all: new HalfLines(1_000_000), gone, a: named('a'), b: named('b'), c: named('c') }
}

test('of lines that are too much together those that began first are let go, however they grow', () => {
  const { all, gone, a, b, c } = three()
  all.weigh(a, 100_000)
  all.weigh(b, 400_000)
  all.weigh(a, 500_000)
  expect(gone).toEqual([])
  all.weigh(c, 200_000)
  expect(gone).toEqual(['a'])
  all.weigh(c, 600_000)
  expect(gone).toEqual(['a'])
})

test('what is short, has ended, or is the only one, has no other let go', () => {
  const { all, gone, a, b, c } = three()
  all.weigh(a, 2_000_000)
  all.weigh(b, 60_000)
  expect(gone).toEqual([])
  all.weigh(a, 0)
  all.weigh(b, 900_000)
  all.weigh(b, 0)
  all.weigh(c, 900_000)
  expect(gone).toEqual([])
})

test('a server whose line was let go is not ended by it, and both go on', async () => {
  const output = { resultBytes: 1_000_000, lineBytes: 100_000_000, stderrBytes: 1000 }
  const hosts = await Promise.all([0, 1].map(() => attach(serverSettings('huge-line.mjs', { output }))))
  await using stack = new AsyncDisposableStack()
  for (const host of hosts) stack.use(host)
  const [first, second] = hosts
  if (first === undefined || second === undefined) return
  const call = (id: string, name: string, bytes = 1) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: { bytes } },
  })
  for (const host of [first, second]) {
    host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: '2025-11-25' } })
    host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await host.answer('i')
    host.send(call('half', 'begin', 90_000_000))
    await eventually(() => host.logs.last(10).lines.includes('begun'))
  }
  first.send(call('soon', 'end'))
  expect(await first.answer('soon')).toHaveProperty('result')
  expect(first.eventsOf('session/too-large')[0]?.detail).toMatchObject({ code: 'ERR_RESULT_TOO_LARGE' })
  expect([first, second].flatMap((host) => host.eventsOf('session/failed'))).toEqual([])
  expect(second.eventsOf('session/too-large')).toEqual([])
})
