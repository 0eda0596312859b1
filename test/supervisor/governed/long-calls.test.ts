// A call that is long is held for some turns: whatever happens to its session meanwhile, it is one call like any other.
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { serverSettings } from '../../support/server-settings.ts'

const call = (id: number, bytes: number): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"x":"${'x'.repeat(bytes)}"}}}`

test('as the first thing that a host says it starts a server, and is answered and recorded', async () => {
  await using host = await attach(serverSettings('raw-echo.mjs'))
  host.send(call(1, 1_000_000))
  expect((await host.answer(1)).result).toBeDefined()
  const calls = (): readonly string[] =>
    host.governed.records().flatMap(({ type }) => (type.startsWith('call.') ? [type] : []))
  await eventually(() => calls().length === 2)
  expect(calls()).toEqual(['call.intent', 'call.outcome'])
})

test('it is answered where the host has closed its end meanwhile, too', async () => {
  // As long as a busy machine needs: what is read by then is answered, and no more
  await using host = await attach(serverSettings('raw-echo.mjs', { stop: { eofMs: 20_000, termMs: 3000 } }))
  const ended = once(host.socket, 'end')
  host.send(call(1, 1_000_000))
  host.socket.end()
  await ended
  expect((await host.answer(1)).result).toBeDefined()
})

test('others that came behind it in its session are not held up by it, and each has its own answer', async () => {
  await using host = await attach(serverSettings('raw-echo.mjs'))
  host.send(...Array.from({ length: 6 }, (_, n) => call(n, n % 2 === 0 ? 500_000 : 10)))
  for (let n = 0; n < 6; n++) expect((await host.answer(n)).result).toBeDefined()
  expect(host.lines).toHaveLength(6)
})

test('taken back while it is read, it is never sent', async () => {
  await using host = await attach(serverSettings('raw-echo.mjs'))
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: {} })
  await host.answer('i')
  host.send(call(1, 1_000_000), {
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: 1 },
  })
  host.send(call(2, 10))
  expect((await host.answer(2)).result).toBeDefined()
  expect(host.lines).toHaveLength(2)
  const intents = host.governed.records().filter(({ type }) => type === 'call.intent')
  expect(intents).toHaveLength(1)
})

test('of those that wait no more are kept than four of the longest', async () => {
  const output = { resultBytes: 1_048_576, lineBytes: 400_000, stderrBytes: 1_048_576 }
  await using host = await attach(serverSettings('never-initialize.mjs', { output }))
  host.send(...Array.from({ length: 5 }, (_, n) => call(n, 350_000)), call(5, 10))
  expect((await host.answer(4)).error?.data).toMatchObject({ code: 'ERR_BUSY' })
  expect(host.lines).toHaveLength(1)
})

test('of those that may have to be sent again, as in the later era, no more are kept either, until they are answered', async () => {
  const output = { resultBytes: 1_048_576, lineBytes: 400_000, stderrBytes: 1_048_576 }
  await using host = await attach(serverSettings('slow.mjs', { output }))
  const wait = (id: number): string =>
    call(id, 350_000).replace('"echo"', '"wait"').replace('{"x"', '{"ms":60000,"x"')
  const intents = (): number => host.governed.records().filter(({ type }) => type === 'call.intent').length
  host.send(...Array.from({ length: 4 }, (_, n) => wait(n)))
  await eventually(() => intents() === 4)
  host.send(wait(4))
  expect((await host.answer(4)).error?.data).toMatchObject({ code: 'ERR_BUSY' })
  host.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }, wait(5))
  await eventually(() => intents() === 5)
  expect(host.lines).toHaveLength(1)
})
