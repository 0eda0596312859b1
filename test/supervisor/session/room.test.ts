// What sessions have kept for their hosts, against what one user may have kept: whoever is too much is told, and the others go on.
import { expect, test } from 'vitest'
import { Allowance } from '../../../src/rpc/allowance.ts'
import { ownTurn } from '../../../src/lib/long-text.ts'
import type { Room } from '../../../src/schema/room.ts'
import type { Launch } from '../../../src/supervisor/ports.ts'
import { attach, type HostEnd } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { plainLaunch } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'

const limits = { ownBytes: 70_000, sharedBytes: 1_000_000 }
const output = { resultBytes: 1_000_000, lineBytes: 1_000_000, stderrBytes: 1000 }
const long = 'x'.repeat(500_000)
const begun = (id: string) =>
  `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"name":"huge","arguments":{"bytes":1,"text":"${long}`
const call = (id: string, name: string, args: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
})

const lines = (messages: readonly object[]) =>
  Buffer.from(messages.map((message) => `${JSON.stringify(message)}\n`).join(''))

interface Hosts extends AsyncDisposable {
  readonly all: readonly HostEnd[]
}

/** Hosts of one user, each with a session of its own. */
async function hostsOf(count: number, protocolVersion = '2025-11-25'): Promise<Hosts> {
  const allowance = new Allowance(limits)
  const all = await Promise.all(
    Array.from({ length: count }, async () => {
      const host = await attach(serverSettings('huge-line.mjs', { output }), { room: allowance.open() })
      host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion } })
      host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
      await host.answer('i')
      return host
    }),
  )
  return {
    all,
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((host) => host[Symbol.asyncDispose]()))
    },
  }
}

const refusalOf = (host: HostEnd, id: string): string | undefined =>
  host.lines.find((line) => line.includes(`"id":"${id}"`) && line.includes('ERR_BUSY'))

test('lines that have not ended are kept as far as there is room, and the rest are refused by their id', async () => {
  await using hosts = await hostsOf(4)
  const [one, two, three, small] = hosts.all
  if (one === undefined || two === undefined || three === undefined || small === undefined) return
  for (const host of [one, two, three]) host.send(Buffer.from(begun('long')))
  const refused = await eventually(() =>
    [one, two, three].find((host) => refusalOf(host, 'long') !== undefined),
  )
  const kept = [one, two, three].filter((host) => host !== refused)
  expect(refused.eventsOf('session/refused')[0]?.detail).toMatchObject({ code: 'ERR_BUSY' })
  // Who asks for little notices nothing.
  small.send(call('small', 'echo', { a: 1 }))
  expect(await small.answer('small')).toHaveProperty('result')
  // Those that were kept arrive whole, and whoever was refused goes on behind the line that was.
  for (const host of [one, two, three]) host.send(Buffer.from('"}}}\n'))
  for (const host of kept) expect((await host.answer('long')).error).toBeUndefined()
  refused.send(call('again', 'huge', { bytes: 1, text: long }))
  expect(await refused.answer('again')).toHaveProperty('result')
  expect(kept.flatMap((host) => host.eventsOf('session/refused'))).toEqual([])
})

test('calls that are not answered are kept as far as there is room', async () => {
  const allowance = new Allowance(limits)
  const settings = serverSettings('slow.mjs', { output })
  await using one = await attach(settings, { room: allowance.open(), era: 'modern' })
  await using other = await attach(settings, { room: allowance.open(), era: 'modern' })
  const waits = (id: string) => call(id, 'wait', { ms: 60_000, text: long + long.slice(0, 200_000) })
  one.send(waits('1'))
  await eventually(() => one.governed.records().some(({ type }) => type === 'call.intent'))
  other.send(waits('2'))
  expect((await other.answer('2')).error?.data).toMatchObject({ code: 'ERR_BUSY', retryable: true })
})

test('answers that are not read wait as far as there is room; beyond it a call is told, and its session goes on', async () => {
  await using hosts = await hostsOf(2)
  const [one, other] = hosts.all
  if (one === undefined || other === undefined) return
  const bytes = 950_000
  one.socket.pause()
  one.send(call('big', 'huge', { bytes }))
  await eventually(() => one.governed.records().some(({ type }) => type === 'call.outcome'))
  other.send(call('big', 'huge', { bytes }))
  expect((await other.answer('big')).error?.data).toMatchObject({ code: 'ERR_BUSY' })
  // Once it is read there is room again.
  one.socket.resume()
  expect(await one.answer('big')).toHaveProperty('result')
  other.send(call('again', 'huge', { bytes }))
  expect(await other.answer('again')).toHaveProperty('result')
})

const refusedLines = (host: HostEnd): number =>
  host.received.toString('latin1').split('ERR_INVALID_REQUEST').length - 1

test('of a host that reads none of its refusals no more is read, until it does', async () => {
  await using hosts = await hostsOf(2)
  const [deaf, other] = hosts.all
  if (deaf === undefined || other === undefined) return
  const all = 25_000
  deaf.socket.pause()
  deaf.send(Buffer.from('{}\n'.repeat(all)))
  await eventually(() => deaf.eventsOf('session/refused').length > 8)
  other.send(call('big', 'huge', { bytes: 900_000 }))
  expect(await other.answer('big')).toHaveProperty('result')
  deaf.socket.resume()
  await eventually(() => refusedLines(deaf) === all)
  expect(deaf.eventsOf('session/failed')).toEqual([])
  deaf.send(call('small', 'echo', { a: 1 }))
  expect(await deaf.answer('small')).toHaveProperty('result')
})

test('a host that says much at once that is refused has others wait for none of it', async () => {
  await using hosts = await hostsOf(2)
  const [loud, other] = hosts.all
  if (loud === undefined || other === undefined) return
  const all = 20_000 // which one piece of a stream has room for
  loud.send(Buffer.from('{}\n'.repeat(all)))
  other.send(Buffer.from('{}\n'))
  await eventually(() => refusedLines(other) === 1)
  expect(refusedLines(loud)).toBeLessThan(all)
  await eventually(() => refusedLines(loud) === all)
})

test('a host that reads none of the refusals of its batches is let go once there is no room for them', async () => {
  await using hosts = await hostsOf(2, '2025-03-26')
  const [deaf, other] = hosts.all
  if (deaf === undefined || other === undefined) return
  deaf.socket.pause()
  deaf.send(Buffer.from(`[${Array.from({ length: 10_000 }, () => '{}').join(',')}]\n`))
  await eventually(() => deaf.eventsOf('session/failed').length > 0)
  expect(deaf.eventsOf('session/failed')[0]?.detail).toMatchObject({ code: 'ERR_BUSY' })
  other.send(call('small', 'echo', { a: 1 }))
  expect(await other.answer('small')).toHaveProperty('result')
})

test('while its server starts no more is taken of a host than what it had begun to say', async () => {
  let held = (): number => 0
  let most = 0
  const room: Room = {
    weigh: (by) => void (held = by),
    hasRoom: () => (most = Math.max(most, held())) < 2_000_000,
  }
  const isLet = Promise.withResolvers<void>()
  const launch: Launch = async (...args) => {
    await isLet.promise
    return plainLaunch(...args)
  }
  await using host = await attach(serverSettings('echo.mjs'), { room, launch })
  const hello = { jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: '2025-11-25' } }
  const said = (text: string) => ({ jsonrpc: '2.0', method: 'notifications/initialized', params: { text } })
  const flood = Array.from({ length: 10_000 }, () => said('x'.repeat(200)))
  host.send(lines([hello, ...Array.from({ length: 200 }, () => said('')), ...flood]))
  await eventually(() => host.launches() === 1)
  for (let turn = 0; turn < 3000; turn += 1) await ownTurn()
  expect(most).toBeLessThan(400_000)
  isLet.resolve()
  host.send(call('last', 'echo', { a: 1 }))
  expect(await host.answer('last')).toHaveProperty('result')
})
