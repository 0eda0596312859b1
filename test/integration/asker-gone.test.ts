// A host that goes away while an operator is asked about its call: nobody is asked any more, and no late yes sends anything.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { configOf, daemon, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { bodiesOf, type Witness, witness } from '../support/witness.ts'

/** As long as a person takes: what was kept for so long by mistake would be seen */
const stop = { eof_ms: 20_000 }
const rules = [{ permission: 'mcp:*:*', action: 'ask' }]
const call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}\n'
const beginning = [
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}\n',
  '{"jsonrpc":"2.0","method":"notifications/initialized"}\n',
].join('')

let seen: Witness
let at: TestDaemon
let operator: Client
let watcher: Client
beforeAll(async () => {
  seen = await witness()
  const servers = Object.fromEntries(
    ['socket', 'early', 'half', 'shim', 'beside', 'pipe', 'control', 'own'].map((name) => [
      name,
      seen.entry(name, { stop, ...(name === 'own' && { instance: 'call' }) }),
    ]),
  )
  servers['full'] = seen.entry('full', { stop, args: ['/app/stops-reading.mjs', '/seen/full'] })
  at = await daemon(configOf(servers, { rules, approval: { wait_ms: 120_000 } }))
  operator = await at.connect('operator')
  watcher = await at.connect('operator')
  await watcher.call('approvals/subscribe', {})
})
afterAll(async () => {
  for (const client of [operator, watcher]) await client[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
  await seen[Symbol.asyncDispose]()
})

const pending = async (server: string) =>
  (await operator.call('approvals/list', {})).pending.find(({ identity }) =>
    identity.startsWith(`${server}/`),
  )
const asked = (server: string) => eventually(() => pending(server))

/** Nobody is asked any more; a yes is told so, and the record says why there is no call. */
async function expectWithdrawn(server: string, id: string, reason: string): Promise<void> {
  await eventually(async () => (await pending(server)) === undefined)
  await expect(operator.call('approvals/approve', { id })).rejects.toMatchObject({
    code: 'ERR_APPROVAL_NOT_FOUND',
    message: expect.stringContaining('its caller went away') as string,
  })
  const used = await eventually(() =>
    bodiesOf(at.stateDir, 'approval.used').find((body) => body['server'] === server),
  )
  expect(used).toMatchObject({ granted: false, by: null, reason: expect.stringContaining(reason) as string })
  expect(bodiesOf(at.stateDir, 'call.intent').filter((body) => body['server'] === server)).toEqual([])
  expect(seen.calls(server)).toEqual([])
}

async function attach(server: string): Promise<Socket> {
  const socket = connect({ path: join(at.runtimeDir, 'host/host.sock'), allowHalfOpen: true })
  await once(socket, 'connect')
  socket.write(`{"jsonrpc":"2.0","id":0,"method":"session/attach","params":{"server":"${server}"}}\n`)
  await once(socket, 'readable')
  socket.write(`${beginning}${call}`)
  return socket
}

test.each(['socket', 'own'])('a host whose socket closes is not waited for (%s)', async (server) => {
  const socket = await attach(server)
  const { id } = await asked(server)
  socket.resume().destroy()
  await expectWithdrawn(server, id, 'the host closed its end')
})

test('for a host that is gone before anybody could be asked nobody is', async () => {
  const socket = await attach('early')
  socket.resume().end(() => socket.destroy())
  const denied = () => bodiesOf(at.stateDir, 'call.denied').find((body) => body['server'] === 'early')
  expect(await eventually(denied)).toMatchObject({ code: 'ERR_CALL_CANCELLED' })
  const asked = bodiesOf(at.stateDir, 'approval.asked').map(({ identity }) => String(identity))
  expect(asked.filter((identity) => identity.startsWith('early/'))).toEqual([])
})

test('a host that closes its end and still reads is waited for, and answered', async () => {
  const socket = await attach('half')
  let heard = ''
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  const { id } = await asked('half')
  socket.end()
  await delay(1000)
  await operator.call('approvals/approve', { id })
  await eventually(() => heard.includes('"id":2'))
  expect(seen.calls('half')).toHaveLength(1)
})

/** As before Node 22.15, where a process can't become another. */
const withoutExec = `--import data:text/javascript,${encodeURIComponent(
  `Object.defineProperty(process,'execve',{value:undefined})`,
)}`

test.each([
  ['shim', {}],
  ['beside', { NODE_OPTIONS: withoutExec }],
])(
  'a command that is killed alone is not waited for, its streams open all the same (%s)',
  async (server, env) => {
    const child = at.start(['stdio', server], env)
    child.stdin?.write(`${beginning}${call}`)
    const { id } = await asked(server)
    child.kill('SIGKILL')
    await expectWithdrawn(server, id, 'the host closed its end')
  },
)

test('one whose pipe ends, and that still reads, is waited for', async () => {
  const child = at.start(['stdio', 'pipe'])
  let heard = ''
  child.stdout?.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  child.stdin?.end(`${beginning}${call}`)
  const { id } = await asked('pipe')
  await delay(1000)
  await operator.call('approvals/approve', { id })
  await eventually(() => heard.includes('"id":2'))
  expect(seen.calls('pipe')).toHaveLength(1)
})

test('a caller whose control connection closes is not waited for', async () => {
  const host = await at.connect('host')
  const ended = host.call('tools/call', { server: 'control', tool: 'echo', arguments: {} }).catch(() => null)
  const { id } = await asked('control')
  await host[Symbol.asyncDispose]()
  await ended
  await expectWithdrawn('control', id, 'the caller closed its connection')
})

test('one that goes while its server reads nothing is not waited for', async () => {
  const socket = await attach('full')
  const { id } = await asked('full')
  const ping = `{"jsonrpc":"2.0","id":$,"method":"ping","params":{"x":"${'x'.repeat(60_000)}"}}\n`
  for (let n = 10; n < 40; n++) socket.write(ping.replace('$', String(n)))
  await delay(500)
  socket.resume().destroy()
  await expectWithdrawn('full', id, 'the host closed its end')
})
