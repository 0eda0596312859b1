// What an unmodified server reaches over an allowlist, when, and what is left of it afterwards.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { type Api, openApi } from '../support/api.ts'
import { endServe, type Place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { callThrough, reachesOut, reachingPlace, recordsAbout } from '../support/reaching-out.ts'

let api: Api
let at: Place
let client: Client
let child: TestDaemon['process']

const allowed = ({ host, address, plainPort }: Api) => [
  { host, port: plainPort, address, private: true, reason: 'the API' },
]
const reaches = (it: Api, more: object = {}): object => reachesOut(allowed(it), more)
const placeFor = (it: Api, servers: Readonly<Record<string, object>>): Promise<Place> =>
  reachingPlace(servers, { allow: allowed(it) })

beforeAll(async () => {
  api = await openApi()
  at = await placeFor(api, {
    open: reaches(api),
    calling: reaches(api, { egress_when: 'calling' }),
    cuts: reaches(api, { egress_when: 'calling' }),
    strays: reaches(api, { egress_when: 'calling' }),
    closes: reaches(api),
  })
  ;({ process: child, client } = await serve(at))
})
afterAll(async () => {
  await endServe({ process: child, client })
  expect(existsSync(join(at.runtimeDir, 'egress'))).toBe(true)
  expect(readdirSync(join(at.runtimeDir, 'egress'))).toEqual([])
  await at[Symbol.asyncDispose]()
  await api[Symbol.asyncDispose]()
})

const call = callThrough(() => client)
const of = (type: string, server: string) => recordsAbout(at, type, server)
const plain = (path: string): string => `http://${api.host}:${api.plainPort}${path}`

describe('a server on an allowlist', () => {
  test('reaches the listed host by a plain connection, which knows of no proxy', async () => {
    expect(await call('open', 'dial', { host: api.host, port: api.plainPort })).toEqual({ connected: true })
  })

  test('fetches from it as it always did, and the journal says so', async () => {
    // The connection of before may have come to be behind the end of its call: inside, a door answers at once.
    const before = await eventually(() => of('egress.connected', 'open').length || null)
    const { status, text } = await call('open', 'ask', { url: plain('/hello') })
    expect({ status, text }).toEqual({ status: 200, text: '{"hello":"/hello"}' })
    const fetched = await eventually(() => of('egress.connected', 'open')[before])
    expect(fetched.body).toMatchObject({
      host: api.host,
      port: api.plainPort,
      verdict: 'connected',
      calls: [expect.stringMatching(/^c-/)],
    })
    expect(JSON.stringify(of('egress.connected', 'open'))).not.toContain('/hello')
  })

  test.each([
    ['another name', { host: 'elsewhere.example.org', port: 443 }],
    ['another port', () => ({ host: api.host, port: 1 })],
    ['an address', () => ({ host: '127.0.0.1', port: api.plainPort })],
    ['a public address', { host: '93.184.216.34', port: 443 }],
    ['a v6 address', { host: '2606:2800:220:1::1', port: 443 }],
  ])('does not reach %s, and is seen to try', async (_title, target) => {
    const asked = typeof target === 'function' ? target() : target
    const before = of('egress.refused', 'open').length
    const { connected, failed } = await call('open', 'dial', asked)
    expect({ connected, failed: typeof failed }).toEqual({ connected: undefined, failed: 'string' })
    await eventually(() => of('egress.refused', 'open').length > before)
    expect(of('egress.refused', 'open').at(-1)?.body).toMatchObject({ verdict: 'refused', address: null })
  })

  test('is shown by a tail of the journal with where it went', async () => {
    const shown = async (type: string): Promise<string> =>
      (await at.run(['audit', 'tail', '--server', 'open', '--type', type])).stdout
    expect(await shown('egress.connected')).toContain(`host=${api.host} port=${api.plainPort} `)
    expect(await shown('egress.refused')).toContain('host=elsewhere.example.org ')
  })

  test('has events of it for operators and for its owner', async () => {
    await using told = await hearing(client)
    for (const what of ['egress/connected', 'egress/refused'])
      await eventually(() => told.events.some(({ type }) => type === what))
  })
})

describe('doors that open for calls', () => {
  test('are open during one, and shut behind it', async () => {
    expect((await call('calling', 'ask', { url: plain('/during') }))['status']).toBe(200)
    await call('calling', 'background', { url: plain('/between'), everyMs: 50 })
    await eventually(() => of('egress.refused', 'calling').length > 0)
    expect(of('egress.refused', 'calling')[0]?.body).toMatchObject({ reason: 'doors-shut', calls: [] })
    await client.call('servers/stop', { server: 'calling' })
  })

  test('cut what is still open when the last call ends', async () => {
    const cut = () => of('egress.closed', 'cuts').filter(({ body }) => body['verdict'] === 'cut')
    // The answer has begun and never ends: so the connection was dialled, and stands when the call is over.
    expect(await call('cuts', 'begin', { url: plain('/endless') })).toEqual({ status: 200 })
    await eventually(() => cut().length > 0)
    expect(cut().map(({ body }) => body)).toEqual([
      expect.objectContaining({ host: api.host, port: api.plainPort, reason: 'doors-shut' }),
    ])
    await eventually(() => api.unfinished() === 0)
    await client.call('servers/stop', { server: 'cuts' })
  })

  test('are none for tools that are declared without a network: the server is halted', async () => {
    await call('strays', 'quiet', { url: plain('/stray') }).catch(() => null)
    await eventually(() => of('server.quarantined', 'strays').length > 0)
    expect(of('server.quarantined', 'strays')[0]?.body).toMatchObject({ failure: 'MP-FH-008' })
    expect(api.asked.filter(({ url }) => url === '/stray')).toEqual([])
    await expect(call('strays', 'ask', { url: plain('/again') })).rejects.toMatchObject({
      code: 'ERR_SCOPE_VIOLATION',
    })
  })
})

test('stopping a server takes its door and what is open with it', async () => {
  await call('closes', 'ask', { url: plain('/once') })
  const doors = (): readonly string[] => readdirSync(join(at.runtimeDir, 'egress'))
  const before = doors()
  const { stopped } = await client.call('servers/stop', { server: 'closes' })
  expect(before).toContain(stopped[0])
  expect(doors()).not.toContain(stopped[0])
})

test('a daemon that is killed leaves no door', async () => {
  await using other = await placeFor(api, { open: reaches(api) })
  const running = await serve(other)
  await running.client.call('tools/call', {
    server: 'open',
    tool: 'ask',
    arguments: { url: plain('/killed') },
  })
  const doors = join(other.runtimeDir, 'egress')
  expect(readdirSync(doors)).toHaveLength(1)
  running.process.kill('SIGKILL')
  await eventually(() => !existsSync(doors))
  await running.client[Symbol.asyncDispose]().catch(() => undefined)
})
