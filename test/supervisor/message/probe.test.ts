import { expect, test } from 'vitest'
import { Eras } from '../../../src/supervisor/message/probe.ts'
import { attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { fixture } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { speaker } from '../../support/speaker.ts'

const ofKind = (kind: string) =>
  serverSettings('discover.mjs', {
    args: [fixture('discover.mjs'), kind],
    timeouts: { initializeMs: kind === 'silent' ? 400 : 10_000, callMs: 5000, idleMs: 60_000 },
  })

const whole = { jsonrpc: '2.0', id: 'd', method: 'server/discover', params: { _meta: speaker } }
const discover = { jsonrpc: '2.0', id: 'd', method: 'server/discover', params: {} }
const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } }

test('a server of the later era answers the probe itself and stays for the session', async () => {
  await using host = await attach(ofKind('modern'))
  host.send(discover)
  const { result } = await host.answer('d')
  host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'pid' } })
  expect((await host.answer(1)).result).toMatchObject({
    content: [{ text: String((result as { pid: number } | undefined)?.pid) }],
  })
  expect(host.launches()).toBe(1)
  expect(host.era()).toBe('modern')
})

test.each(['dies', 'error'])(
  'a server that %s at the probe is of the old era, and gets a fresh start',
  async (kind) => {
    await using host = await attach(ofKind(kind))
    host.send(discover)
    expect((await host.answer('d')).error).toMatchObject({ code: -32601 })
    host.send(initialize)
    expect((await host.answer(0)).result).toMatchObject({ serverInfo: { name: kind } })
    expect(host.launches()).toBe(2)
    expect(host.era()).toBe(null)
    const ended = () => host.eventsOf('instance/state').some(({ detail }) => detail['to'] === 'stopped')
    await eventually(ended)
    for (const id of Array.from({ length: 20 }, (_, n) => n + 1)) {
      host.send({ jsonrpc: '2.0', id, method: 'ping' })
      expect(await host.answer(id)).not.toMatchObject({ error: { data: expect.anything() as unknown } })
    }
    expect(host.eventsOf('session/ended')).toEqual([])
  },
)

test.each([
  ['it has no such method', ofKind('error'), whole, 'legacy'],
  ['it has no such method, to a question that does not say who asks', ofKind('error'), discover, null],
  ['it ended', ofKind('dies'), whole, null],
  ['another error', ofKind('refuses'), whole, null],
])(
  'of a server that answers %s its era is remembered only where that is sure',
  async (_, server, question, era) => {
    await using host = await attach(server)
    host.send(question)
    await host.answer('d')
    host.send(initialize)
    expect((await host.answer(0)).result).toBeDefined()
    expect(host.era()).toBe(era)
  },
)

test('what one caller’s question came to is nothing to another, and a start forgets it', () => {
  const eras = new Eras()
  eras.of('1').set('legacy')
  eras.of('2').set('modern')
  expect([eras.of('1').get(), eras.of('2').get(), eras.of('3').get()]).toEqual(['legacy', 'modern', null])
  eras.forget((principal) => principal === '1')
  expect([eras.of('1').get(), eras.of('2').get()]).toEqual([null, 'modern'])
})

test("a server's own error answer to the probe reaches the host byte for byte", async () => {
  await using host = await attach(ofKind('error'))
  host.send(discover)
  await host.answer('d')
  expect(host.lines).toEqual(['{"id":"d", "jsonrpc":"2.0","error":{"code":-32601,"message":"own words"}}'])
})

test('a server that is known to be of the old era is not started for a probe', async () => {
  await using host = await attach(ofKind('dies'), { era: 'legacy' })
  host.send(discover)
  expect((await host.answer('d')).error).toMatchObject({ code: -32601 })
  expect(host.launches()).toBe(0)
})

test('a probe that nobody answers ends, and is not remembered', async () => {
  await using host = await attach(ofKind('silent'))
  host.send(discover)
  expect((await host.answer('d')).error).toMatchObject({ code: -32601 })
  expect(host.era()).toBe(null)
})

test('a host that goes on with initialize does not wait for its probe', async () => {
  await using host = await attach({
    ...ofKind('silent'),
    timeouts: { initializeMs: 20_000, callMs: 1, idleMs: 1 },
  })
  host.send(discover, initialize)
  expect((await host.answer(0)).result).toMatchObject({ serverInfo: { name: 'silent' } })
  expect((await host.answer('d')).error).toMatchObject({ code: -32601 })
})

test('a probe after initialize never reaches the server', async () => {
  await using host = await attach(ofKind('dies'))
  host.send(initialize)
  await host.answer(0)
  host.send(discover)
  expect((await host.answer('d')).error).toMatchObject({ code: -32601 })
  host.send({ jsonrpc: '2.0', id: 2, method: 'ping' })
  expect((await host.answer(2)).result).toBeDefined()
})

test('a host that knows the era may call without any handshake', async () => {
  await using host = await attach(ofKind('modern'))
  host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'pid', _meta: {} } })
  expect((await host.answer(1)).result).toBeDefined()
})
