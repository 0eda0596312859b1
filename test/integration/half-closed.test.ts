// A host that says all that it has to at once, and closes its end: it is answered to the last line, however much of it comes when.
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'

let at: TestDaemon
beforeAll(async () => {
  at = await daemon(configOf({ fixture: fixture('echo') }))
})
afterAll(() => at[Symbol.asyncDispose]())

const line = (message: object): string => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`
const introduction = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
}

/** Ids that a host reads whose server answers all that it said. */
async function ends(blank: number, pings: number): Promise<readonly unknown[]> {
  const socket = connect({ path: join(at.runtimeDir, 'host/host.sock'), allowHalfOpen: true })
  socket.end(
    '\n'.repeat(blank) +
      line({ id: 'a', method: 'session/attach', params: { server: 'fixture' } }) +
      line({ id: 'i', method: 'initialize', params: introduction }) +
      line({ method: 'notifications/initialized' }) +
      Array.from({ length: pings }, (_, id) => line({ id, method: 'ping' })).join(''),
  )
  const answers = (await text(socket)).trim().split('\n')
  return answers.map((answer) => (JSON.parse(answer) as { id: unknown }).id)
}

test.each([
  [0, 300],
  [200, 60],
  [200, 62],
  [200, 300],
])('behind %d blank lines, with %d pings behind its handshake', async (blank, pings) => {
  const ids = await ends(blank, pings)
  expect(ids.slice(0, 2)).toEqual(['a', 'i'])
  expect(ids.slice(2).toSorted((one, other) => Number(one) - Number(other))).toEqual([...Array(pings).keys()])
})

test('a server whose hosts all leave so is not taken for one that is lost again and again', async () => {
  for (let n = 0; n < 25; n++) await ends(0, 5)
  const { servers } = await at.client.call('servers/list', {})
  expect(servers.find(({ name }) => name === 'fixture')?.reason ?? '').not.toContain('quarantined')
})
