// In the later era a server tells of changes to whoever subscribed: what it lists is compared though no host has.
import { expect, test } from 'vitest'
import { RawJson } from '../../src/lib/raw-json.ts'
import { modernVersion } from '../../src/supervisor/message/modern-dress.ts'
import { attach } from '../support/attach.ts'
import { serverSettings } from '../support/server-settings.ts'
import { sharing } from '../support/sharing.ts'
import { eventually } from '../support/eventually.ts'
import { fixture } from '../support/plain-launch.ts'
import { caller, superviseAll, type Supervised } from '../support/supervisor.ts'
import { patienceMs } from '../support/patience.ts'

const mismatch = { data: { code: 'ERR_DECLARATION_MISMATCH', failure: 'MP-FH-003' } }
const _meta = {
  'io.modelcontextprotocol/protocolVersion': modernVersion,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
}

const call = ({ supervisor }: Pick<Supervised, 'supervisor'>, tool: string) =>
  supervisor.call(
    caller(),
    {
      server: 'fixture',
      tool,
      timeoutMs: null,
      generation: null,
      lineage: null,
      arguments: new RawJson('{}'),
    },
    { signal: AbortSignal.timeout(patienceMs) },
  )

test('a tool that changed is not called in a session whose host did not subscribe, and the host hears of nothing that it did not ask for', async () => {
  await using host = await attach(serverSettings('subscribed.mjs'))
  const ask = (id: number, method: string, params: object) => {
    host.send({ jsonrpc: '2.0', id, method, params: { ...params, _meta } })
    return host.answer(id)
  }
  await ask(1, 'server/discover', {})
  expect(await ask(2, 'tools/call', { name: 'echo' })).toMatchObject({ result: {} })
  expect(await ask(3, 'tools/call', { name: 'change' })).toMatchObject({ result: {} })
  expect((await ask(4, 'tools/call', { name: 'echo' })).error).toMatchObject(mismatch)
  expect(host.lines.map((line) => (JSON.parse(line) as { id?: unknown }).id)).toEqual([1, 2, 3, 4])
})

test.each(['refuses', 'completes', 'cancels', 'cancels, with a mark of it,'])(
  'a server that %s the subscription is asked again, and what it changed meanwhile is not called',
  async (way) => {
    await using host = await attach(serverSettings('', { args: [fixture('unsubscribing.mjs'), way] }))
    let id = 0
    const ask = (method: string, params: object) => {
      host.send({ jsonrpc: '2.0', id: ++id, method, params: { ...params, _meta } })
      return host.answer(id)
    }
    await ask('server/discover', {})
    expect(await ask('tools/call', { name: 'echo' })).toMatchObject({ result: {} })
    expect(await ask('tools/call', { name: 'change' })).toMatchObject({ result: {} })
    const refused = await eventually(async () => (await ask('tools/call', { name: 'echo' })).error)
    expect(refused).toMatchObject(mismatch)
    expect(host.lines).toHaveLength(id)
  },
)

test('nor is it for a control call of such a server', async () => {
  const settings = serverSettings('', { args: [fixture('unsubscribing.mjs'), 'completes'] })
  await using all = await superviseAll([settings])
  const code = (tool: string): Promise<unknown> =>
    call(all, tool).then(
      () => null,
      (error: { code?: unknown }) => error.code,
    )
  expect([await code('echo'), await code('change')]).toEqual([null, null])
  await eventually(async () => (await code('echo')) === 'ERR_DECLARATION_MISMATCH')
})

test('a tool that changed is not called by a control call either, where sessions share the process, and they hear of nothing either', async () => {
  await using all = await sharing(serverSettings('subscribed.mjs', { instance: 'shared' }))
  const host = await all.host()
  expect(await host.ask(1, 'tools/call', { name: 'echo', _meta })).toMatchObject({ result: {} })
  await call(all, 'echo')
  await call(all, 'change')
  await expect(call(all, 'echo')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' })
  expect((await host.ask(2, 'tools/call', { name: 'echo', _meta })).error).toMatchObject(mismatch)
  expect(host.messages.map(({ id }) => id)).toEqual([1, 2])
})
