// In the later era a server tells of changes to whoever subscribed: what it lists is compared though no host has.
import { expect, test } from 'vitest'
import { RawJson } from '../../src/lib/raw-json.ts'
import { modernVersion } from '../../src/supervisor/message/modern-dress.ts'
import { attach } from '../support/attach.ts'
import { serverSettings } from '../support/server-settings.ts'
import { sharing } from '../support/sharing.ts'
import { caller } from '../support/supervisor.ts'

const mismatch = { data: { code: 'ERR_DECLARATION_MISMATCH', failure: 'MP-FH-003' } }
const _meta = {
  'io.modelcontextprotocol/protocolVersion': modernVersion,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
}

test('a tool that changed is not called in a session whose host did not subscribe, and the host hears of nothing that it did not ask for', async () => {
  await using host = await attach(serverSettings('subscribed.mjs'))
  const ask = (id: number, method: string, params: object) => {
    host.send({ jsonrpc: '2.0', id, method, params: { ...params, _meta } })
    return host.answer(id, 20_000)
  }
  await ask(1, 'server/discover', {})
  expect(await ask(2, 'tools/call', { name: 'echo' })).toMatchObject({ result: {} })
  expect(await ask(3, 'tools/call', { name: 'change' })).toMatchObject({ result: {} })
  expect((await ask(4, 'tools/call', { name: 'echo' })).error).toMatchObject(mismatch)
  expect(host.lines.map((line) => (JSON.parse(line) as { id?: unknown }).id)).toEqual([1, 2, 3, 4])
})

test('nor is it for a control call, where sessions share the process, and they hear of nothing either', async () => {
  await using all = await sharing(serverSettings('subscribed.mjs', { instance: 'shared' }))
  const host = await all.host()
  const call = (tool: string) =>
    all.supervisor.call(
      caller(),
      {
        server: 'fixture',
        tool,
        timeoutMs: null,
        generation: null,
        lineage: null,
        arguments: new RawJson('{}'),
      },
      { signal: AbortSignal.timeout(20_000) },
    )
  expect(await host.ask(1, 'tools/call', { name: 'echo', _meta })).toMatchObject({ result: {} })
  await call('echo')
  await call('change')
  await expect(call('echo')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' })
  expect((await host.ask(2, 'tools/call', { name: 'echo', _meta })).error).toMatchObject(mismatch)
  expect(host.messages.map(({ id }) => id)).toEqual([1, 2])
})
