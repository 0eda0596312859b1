import { expect, test } from 'vitest'
import { attach } from '../../support/attach.ts'
import { serverSettings } from '../../support/server-settings.ts'

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
}

test('a session answers initialize, lists and calls', async () => {
  await using host = await attach(serverSettings('echo.mjs'))
  host.send(initialize)
  expect((await host.answer(0)).result).toMatchObject({ serverInfo: { name: 'echo' } })
  host.send(
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 'a', method: 'tools/list' },
  )
  expect((await host.answer('a')).result).toMatchObject({
    tools: [{ name: 'echo' }, { name: 'fail' }, { name: 'error' }],
  })
  host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { x: 1 } } })
  expect((await host.answer(1)).result).toMatchObject({ structuredContent: { x: 1 } })
  host.socket.end()
  expect(await host.session.ended).toEqual({ status: 0, reason: 'the host closed its end' })
})

test('what a host says before it closes its end is answered, though the server was not started yet', async () => {
  await using host = await attach(serverSettings('echo.mjs'))
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { x: 1 } } }
  host.send(initialize, { jsonrpc: '2.0', method: 'notifications/initialized' }, call)
  host.socket.end()
  expect((await host.answer(0)).result).toMatchObject({ serverInfo: { name: 'echo' } })
  expect((await host.answer(1)).result).toMatchObject({ structuredContent: { x: 1 } })
  expect(await host.session.ended).toEqual({ status: 0, reason: 'the host closed its end' })
})
