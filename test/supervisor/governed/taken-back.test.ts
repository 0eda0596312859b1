// Calls whose rules take long to be decided, and which their host takes back meanwhile: nobody waits for what nobody asks for any more.
import { expect, test } from 'vitest'
import { attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { serverSettings } from '../../support/server-settings.ts'

test('what was taken back before its turn is not decided, and reaches no server', async () => {
  const rules = [
    // Each takes a million steps, of 5 ms and more.
    { permission: 'mcp:*:*', action: 'deny', where: { '/v': `**/${'a/'.repeat(400)}b` }, origin: 'rules[0]' },
    { permission: 'mcp:*:*', action: 'allow', where: {}, origin: 'rules[1]' },
  ] as const
  await using host = await attach(serverSettings('raw-echo.mjs'), { rules })
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: {} })
  await host.answer('i')
  const count = 60
  const value = 'a/'.repeat(1500)
  const calls = Array.from({ length: count }, (_, id) => {
    const params = { name: 'echo', arguments: { v: value } }
    return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
  })
  const cancels = calls.map((_, requestId) =>
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }),
  )
  host.send(Buffer.from(`${[...calls, ...cancels].join('\n')}\n`))
  host.send({
    jsonrpc: '2.0',
    id: 'last',
    method: 'tools/call',
    params: { name: 'echo', arguments: { v: 'b' } },
  })
  await host.answer('last')
  const records = await eventually(() => {
    const found = host.governed
      .records()
      .filter(({ type }) => type === 'call.denied' || type === 'call.outcome')
    return found.length > 0 && found
  })
  const denied = records.filter(({ body }) => JSON.stringify(body).includes('rules[0]'))
  expect(denied.length).toBeLessThan(count / 2)
  expect(host.lines.filter((line) => /"id":\d/.test(line) && line.includes('"result"'))).toEqual([])
})
