// A process that sessions share, and hosts and a server that would have one of them pay for another.
import { expect, test } from 'vitest'
import { mostShared } from '../../src/supervisor/shared/refusal.ts'
import { living } from '../support/collect.ts'
import { eventually } from '../support/eventually.ts'
import { type Sharer, type Sharing, shares, sharing } from '../support/sharing.ts'
import { caller } from '../support/supervisor.ts'

const output = { resultBytes: 1_048_576, lineBytes: 65_536, stderrBytes: 65_536 }
const restart = { scheduleS: [0.2], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 }

const held = (host: Sharer, key: string) =>
  eventually(async () =>
    (await host.call(`held ${Math.random()}`, 'heard')).includes(`\\"key\\":\\"${key}\\"`),
  )
const instanceOf = ({ supervisor }: Sharing) => supervisor.list(caller())[0]?.instances[0]
const codeOf = async (answer: Promise<{ readonly error?: { readonly data?: Record<string, unknown> } }>) =>
  (await answer).error?.data?.['code']
const cancelledAt = async (host: Sharer) =>
  (JSON.parse(await host.call(`at ${Math.random()}`, 'heard')) as string[]).filter((line) =>
    line.includes('"notifications/cancelled"'),
  )

test('a host that does not read is let go, and the others lose nothing', async () => {
  await using all = await sharing(shares({ output }))
  const [slow, other] = [await all.host(), await all.host()]
  slow.begin(1, 'hold', { key: 'a' }, { progressToken: 1 })
  await held(slow, 'a')
  slow.socket.pause()
  const pid = await other.call(1, 'pid')
  expect(await other.call(2, 'flood', { key: 'a', count: 3000, bytes: 1000 })).toBe('done')
  await eventually(() => all.events.some(({ type }) => type === 'session/failed'))
  const [failed] = all.events.filter(({ type }) => type === 'session/failed')
  expect(failed?.detail).toMatchObject({ session: slow.session, code: 'ERR_BUSY' })
  expect(await other.call(3, 'pid')).toBe(pid)
  slow.socket.resume()
  await slow.closed
  await eventually(() => instanceOf(all)?.sessions === 1)
  expect(await cancelledAt(other)).toHaveLength(1)
})

test('one session cannot take the whole process: beyond its share it is refused, and another is not', async () => {
  await using all = await sharing()
  const [greedy, other] = [await all.host(), await all.host()]
  for (let n = 0; n < mostShared; n++) greedy.begin(n, 'hold', { key: `k${n}` })
  expect(await codeOf(greedy.ask(mostShared, 'tools/list'))).toBe('ERR_BUSY')
  expect(await other.call(1, 'pid')).toMatch(/^\d+$/)
})

test('an answer that is too long, or too deep, fails the one call that it is for', async () => {
  await using all = await sharing(shares({ output }))
  const [one, two] = [await all.host(), await all.host()]
  const pid = await two.call(0, 'pid')
  for (const [key, result, code] of [
    ['long', '"LONG:70000"', 'ERR_RESULT_TOO_LARGE'],
    ['deep', `${'['.repeat(1100)}${']'.repeat(1100)}`, 'ERR_SERVER_PROTOCOL'],
  ] as const) {
    one.begin(key, 'hold', { key })
    two.begin(key, 'hold', { key: `other ${key}` })
    await held(one, key)
    const line = `{"jsonrpc":"2.0","id":ID:${key},"result":{"is":${result}}}`
    two.begin(`say ${key}`, 'pid', { lines: [line] })
    expect(await codeOf(one.answer(key))).toBe(code)
    expect(await two.call(`${key} after`, 'pid')).toBe(pid)
    expect(two.messages.filter(({ id }) => id === key)).toEqual([])
  }
})

test.each([
  ['a line that is too long and for nobody', { lines: ['{"jsonrpc":"2.0","id":0,"result":"LONG:70000"}'] }],
  ['a storm of what is no message', { lines: Array.from({ length: 8000 }, () => 'no') }],
  ['its input closed', {}],
])('%s ends the process for all, who are told, and the next call has another', async (what, args) => {
  await using all = await sharing(shares({ output: { ...output, lineBytes: 60_000 }, restart }))
  const [one, two] = [await all.host(), await all.host()]
  const pid = await one.call(0, 'pid')
  one.begin(1, 'hold', { key: 'a' })
  await held(one, 'a')
  two.begin(2, what === 'its input closed' ? 'exit-input' : 'say', args)
  expect(await codeOf(one.answer(1))).toBe('ERR_SERVER_UNAVAILABLE')
  await eventually(() => instanceOf(all)?.state === 'ready')
  expect(await one.call(3, 'pid')).not.toBe(pid)
})

test('a call that takes too long is taken back at the server, and its late answer goes nowhere', async () => {
  const timeouts = { initializeMs: 10_000, callMs: 400, idleMs: 600_000 }
  await using all = await sharing(shares({ timeouts }))
  const [one, two] = [await all.host(), await all.host()]
  one.begin(1, 'hold', { key: 'a' })
  expect(await codeOf(one.answer(1))).toBe('ERR_CALL_TIMEOUT')
  await eventually(async () => (await cancelledAt(two)).length === 1)
  await two.call(2, 'say', { lines: ['{"jsonrpc":"2.0","id":ID:a,"result":{}}'] })
  await one.call(3, 'pid')
  expect(one.messages.filter(({ id }) => id === 1)).toHaveLength(1)
})

test('a session that ends takes its own calls back, and another’s go on', async () => {
  await using all = await sharing()
  const [one, two] = [await all.host(), await all.host()]
  one.begin(1, 'hold', { key: 'a' })
  two.begin(1, 'hold', { key: 'b' })
  await held(one, 'a')
  await held(two, 'b')
  one.socket.destroy()
  await eventually(async () => (await cancelledAt(two)).length === 1)
  const say = (key: string) => `{"jsonrpc":"2.0","id":ID:${key},"result":{"of":"${key}"}}`
  await two.call(2, 'say', { lines: [say('a'), say('b')] })
  expect((await two.answer(1)).result).toEqual({ of: 'b' })
})

test('a tool that is changed for one is refused to all', async () => {
  await using all = await sharing()
  const [one, two] = [await all.host(), await all.host()]
  await two.call(1, 'pid')
  await one.call(1, 'list')
  const code = await eventually(async () => {
    const { error } = await two.ask(`again ${Math.random()}`, 'tools/call', { name: 'pid', arguments: {} })
    return error?.data?.['code']
  }, 8000)
  expect(code).toBe('ERR_DECLARATION_MISMATCH')
})

test('a prompt that one is shown and that was not compared has all compared, before anybody’s next call', async () => {
  await using all = await sharing()
  const [one, two] = [await all.host(), await all.host()]
  await two.call(1, 'pid')
  await one.call(1, 'prompt')
  const changes = () => all.governed.records().filter(({ type }) => type === 'surface.changed')
  expect(changes()).toEqual([])
  await one.ask(2, 'prompts/list')
  await two.call(2, 'pid')
  expect(changes()).toHaveLength(1)
})

test('whoever stops or halts the server ends every call and session; released, it runs again', async () => {
  await using all = await sharing(shares({ restart }))
  const [one, two] = [await all.host(), await all.host()]
  await Promise.all([one, two].map((host) => host.call(1, 'pid')))
  one.begin(2, 'hold', { key: 'a' })
  await held(one, 'a')
  const stopped = await all.supervisor.stop(caller(), 'fixture')
  expect(stopped).toHaveLength(1)
  expect(await codeOf(one.answer(2))).toBe('ERR_SERVER_UNAVAILABLE')
  await Promise.all([one.closed, two.closed])
  expect(instanceOf(all)).toMatchObject({ state: 'stopped', sessions: 0 })

  const three = await all.host()
  await three.call(1, 'pid')
  three.begin(2, 'hold', { key: 'a' })
  await held(three, 'a')
  await all.supervisor.quarantine('fixture', 'a test')
  expect((await three.answer(2)).error?.message).toMatch(/quarantined/)
  await three.closed
  expect(instanceOf(all)?.state).toBe('quarantined')
  await expect(all.host()).rejects.toThrow(/quarantined/)
  await all.supervisor.release('fixture', 'a test')
  const four = await all.host()
  expect(await four.call(1, 'pid')).toMatch(/^\d+$/)
})

test('what is kept of a call that was taken back is not the line that its progress token stood in', async () => {
  await using all = await sharing()
  const host = await all.host()
  await host.call('first', 'pid')
  const before = living()
  for (let n = 0; n < 20; n++) {
    const progressToken = `the progress of the call ${n}`
    host.begin(n, 'hold', { key: `k${n}`, long: 'x'.repeat(500_000) }, { progressToken })
  }
  const method = 'notifications/progress'
  const line = `{"jsonrpc":"2.0","method":"${method}","params":{"progress":1,"progressToken":TOKEN:k19}}`
  await eventually(async () => {
    await host.call(`say ${Math.random()}`, 'say', { lines: [line] })
    return host.told(method).length > 0
  })
  for (let n = 0; n < 20; n++) host.send({ method: 'notifications/cancelled', params: { requestId: n } })
  await host.call('last', 'pid')
  expect(living() - before).toBeLessThan(4 * 1024 * 1024)
  expect(host.told(method)[0]).toMatchObject({ progressToken: 'the progress of the call 19' })
})
