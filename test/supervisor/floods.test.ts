// A server that writes more than anybody can judge: it is not listened to for long, and nobody else has to wait for it.
import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { RawJson } from '../../src/lib/raw-json.ts'
import { ServerLines } from '../../src/supervisor/message/server-lines.ts'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { patienceMs } from '../support/patience.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { caller, superviseAll } from '../support/supervisor.ts'

test.each(['session', 'call'] as const)(
  'the process of a control call that floods it with what is not MCP is ended by name (instance: %s)',
  async (instance) => {
    await using all = await superviseAll([serverSettings('garbage.mjs', { instance })])
    const call = {
      server: 'fixture',
      tool: 'flood',
      arguments: new RawJson('{"line":"x","lines":3000}'),
      timeoutMs: null,
      generation: null,
      lineage: null,
    }
    const signal = AbortSignal.timeout(patienceMs)
    await expect(all.supervisor.call(caller(), call, { signal })).rejects.toMatchObject({
      code: 'ERR_SERVER_UNAVAILABLE',
      message: expect.stringContaining('that are not MCP'),
    })
  },
)

test.each(['call', 'session'] as const)(
  'an answer behind many lines reaches its caller although the server ends right behind it (instance: %s)',
  async (instance) => {
    const call = {
      server: 'fixture',
      tool: 'flood',
      arguments: new RawJson('{"notices":20000}'),
      timeoutMs: null,
      generation: null,
      lineage: null,
    }
    // One call of each: a server that has ended is not started again at once.
    for (let n = 0; n < 10; n++) {
      await using all = await superviseAll([serverSettings('floods-then-ends.mjs', { instance })])
      const signal = AbortSignal.timeout(patienceMs)
      expect(JSON.stringify(await all.supervisor.call(caller(), call, { signal }))).toContain('last')
    }
  },
)

test.each(['session', 'call'] as const)(
  'blank lines are nothing, however many, and the answer behind them reaches its caller (instance: %s)',
  async (instance) => {
    await using all = await superviseAll([
      serverSettings('garbage.mjs', { args: [fixture('garbage.mjs'), 'quiet'], instance }),
    ])
    for (const line of ['', '\r', ' \t \r']) {
      const call = {
        server: 'fixture',
        tool: 'flood',
        arguments: new RawJson(JSON.stringify({ line, lines: 3000 })),
        timeoutMs: null,
        generation: null,
        lineage: null,
      }
      const signal = AbortSignal.timeout(patienceMs)
      expect(JSON.stringify(await all.supervisor.call(caller(), call, { signal }))).toContain('done')
    }
    expect(all.events.filter(({ type }) => type === 'control/garbage')).toEqual([])
  },
)

async function versionOf2025(): Promise<HostEnd> {
  const host = await attach(serverSettings('raw-script.mjs'))
  const answer = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}'
  host.send({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', '@reply': Buffer.from(`${answer}\n`).toString('base64') },
  })
  await host.answer(1)
  return host
}

const told = (id: number, ...lines: readonly string[]): object => ({
  jsonrpc: '2.0',
  id,
  method: 'ping',
  params: { '@reply': Buffer.from(lines.map((line) => `${line}\n`).join('')).toString('base64') },
})
const ok = (id: number): string => `{"jsonrpc":"2.0","id":${id},"result":{}}`

test.each([
  ['lines', Array<string>(5000).fill('x')],
  ['the messages of a batch', [`[${Array<number>(5000).fill(1).join()}]`]],
])('of %s that are not MCP no more is judged than is too much', async (_what, lines) => {
  await using host = await versionOf2025()
  host.send(told(2, ...lines, ok(2)))
  expect(await host.session.ended).toMatchObject({ reason: expect.stringContaining('not MCP') })
  // The same is told when its count is a power of two: the 1024th was not judged.
  expect(host.eventsOf('session/garbage').at(-1)?.detail).toMatchObject({ count: 512 })
})

test('a batch of a server may be as long as one of a host, and what is longer is one line that is not MCP', async () => {
  await using host = await versionOf2025()
  const ping = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
  const batch = (length: number): string => `[${Array<string>(length).fill(ping).join()}]`
  host.send(told(2, batch(10_000), ok(2)))
  await host.answer(2)
  expect(host.lines.some((line) => line.startsWith('[') && line.length > 500_000)).toBe(true)
  host.send(told(3, batch(10_001), ok(3)))
  await host.answer(3)
  expect(host.eventsOf('session/garbage')).toMatchObject([
    { detail: { reason: expect.stringContaining('10000') } },
  ])
})

test('lines that came together are read over several turns, in their order, and none while it may not be read', async () => {
  const stdout = new PassThrough()
  const heard: number[] = []
  let mayRead = true
  const lines = new ServerLines(
    serverSettings('raw-script.mjs'),
    { stdout, redactor: null },
    {
      line: (_bytes, text, start, end) => void heard.push(Number(text.slice(start, end))),
      tooLong: () => undefined,
      tooLongEnd: () => undefined,
      mayRead: () => mayRead,
    },
  )
  stdout.on('data', (chunk: Buffer) => lines.push(chunk))
  const all = Array.from({ length: 5000 }, (_, n) => n)
  stdout.write(all.map((n) => `${n}\n`).join(''))
  await eventually(() => heard.length > 0)
  const atOnce = heard.length
  expect(atOnce).toBeLessThan(all.length)
  mayRead = false
  for (let n = 0; n < 10; n++) await turn()
  expect(heard.length).toBeLessThanOrEqual(2 * atOnce)
  mayRead = true
  stdout.resume()
  await eventually(() => heard.length === all.length)
  expect(heard).toEqual(all)
})
