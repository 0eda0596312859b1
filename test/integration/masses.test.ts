// Servers of a real daemon that have more of something than anybody can hold: lines, bytes of one line, processes that have ended.
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { attached } from '../support/attached.ts'
import { configOf, endServe, fixture, place, serve, type Place, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { residentMib } from '../support/holdings.ts'
import { childrenOf } from '../support/processes.ts'
import { orLate, stretched } from '../support/pace.ts'
import { buildProbe } from '../support/probe.ts'
import { processorS } from '../support/processor-time.ts'

const mib = 1024 ** 2
const ladder = { eof_ms: 200, term_ms: 300 }
const restart = { schedule_s: [0.1], jitter: 0, steady_s: 60, storm: 1000, start_attempts: 1 }
const zombies = 10_000
/** What `offline` gives */
const usualPids = 64
const many = { version: 1, name: 'many', extends: 'offline', widens: true, limits: { pids: zombies + 100 } }
const leaving = (profile: string): object => ({
  command: 'zombies',
  args: [`${zombies}`],
  profile,
  trust: 'trusted',
  acceptance: 'first-use',
  stop: ladder,
})

let at: Place
let child: TestDaemon['process']
let client: Client
beforeAll(async () => {
  const allowed = [
    { name: 'node', path: process.execPath },
    { name: 'zombies', path: buildProbe('zombies') },
  ]
  const servers = {
    masses: fixture('masses', { restart, stop: ladder }),
    echo: fixture('echo'),
    few: leaving('offline'),
    many: leaving('many'),
  }
  at = await place(configOf(servers, { allowed_commands: allowed }))
  await mkdir(join(at.folder, 'profiles'), { mode: 0o700 })
  await writeFile(join(at.folder, 'profiles/many.yaml'), JSON.stringify(many), { mode: 0o600 })
  ;({ process: child, client } = await serve(at))
  for (const server of ['masses', 'echo']) await client.call('servers/start', { server })
  await (await attached(at, 'masses'))[Symbol.asyncDispose]()
  atFirst = residentMib(client.hello.pid)
})
afterAll(async () => {
  await endServe({ process: child, client })
  await at[Symbol.asyncDispose]()
})
afterEach(() => expectAftermath(at, client))

/** As it is before anything much was said to it, MiB */
let atFirst: number
/** What is resident of the daemon beyond that, at most until the work is done, MiB. */
async function added(work: () => Promise<unknown>): Promise<number> {
  const { pid } = client.hello
  let most = residentMib(pid)
  const timer = setInterval(() => (most = Math.max(most, residentMib(pid))), 5)
  await work().finally(() => clearInterval(timer))
  return Math.max(most, residentMib(pid)) - atFirst
}

const call = (server: string, tool: string, args: Record<string, unknown> = {}) =>
  client.call('tools/call', { server, tool, arguments: args })
const pidOf = async (server: string, of = 'control'): Promise<number | null> =>
  (await client.call('servers/get', { server })).instances.find(({ purpose }) => purpose === of)?.pid ?? null

test('15: a line of 256 MiB fails the call that waits for it, its server is ended, and the daemon has kept no more than a line may be long', async () => {
  const [bytes, mostMib] = [256 * mib, 128]
  const tooLarge = 'ERR_RESULT_TOO_LARGE'
  await call('masses', 'echo')
  const before = await pidOf('masses')
  const overControl = await added(async () => {
    await expect(call('masses', 'line', { bytes })).rejects.toMatchObject({ code: tooLarge })
    await eventually(() => !existsSync(`/proc/${before}`))
  })
  expect(overControl).toBeLessThan(mostMib)
  await eventually(async () => (await call('masses', 'echo')).type === 'output')
  expect(await pidOf('masses')).not.toBe(before)

  await using host = await attached(at, 'masses')
  const inSession = await added(async () => {
    expect(await host.call('line', { bytes })).toMatchObject({ error: { data: { code: tooLarge } } })
    await eventually(async () => (await pidOf('masses', 'session')) === null)
  })
  expect(inSession).toBeLessThan(mostMib)
  await using next = await attached(at, 'masses')
  expect(await next.call('echo', { a: 1 })).toMatchObject({ result: { structuredContent: { a: 1 } } })
})

test('17: a hundred thousand lines of a server reach its host, each once and in their order', async () => {
  await using host = await attached(at, 'masses')
  const lines = 100_000
  const from = host.lines.length
  const [answer] = await host.callAll('count', [{ lines }])
  expect(answer).toMatchObject({ result: { structuredContent: { lines } } })
  const said = host.lines
    .slice(from)
    .map((line) => JSON.parse(line) as { readonly params?: { readonly data?: unknown } })
  expect(said).toHaveLength(lines + 1)
  expect(said.findIndex(({ params }, n) => params?.data !== n)).toBe(lines)
})

test('17: blank lines before an answer are nothing, over the control socket and in a session', async () => {
  const lines = 1500
  await call('masses', 'echo')
  const before = await pidOf('masses')
  expect(await call('masses', 'blank', { lines })).toMatchObject({ type: 'output' })
  expect(await pidOf('masses')).toBe(before)
  await using host = await attached(at, 'masses')
  const from = host.lines.length
  expect(await host.call('blank', { lines })).toMatchObject({ result: { structuredContent: { lines } } })
  expect(host.lines).toHaveLength(from + 1)
})

/** Has the server leave what it may; gives its tree, from PID 1 to those that have ended, and what kept it from more. */
async function leave(server: string): Promise<{ readonly tree: readonly number[]; readonly why: unknown }> {
  const { data } = await call(server, 'leave')
  const [, count, why] = /"(\d+), ([^"]*)"/.exec(JSON.stringify(data)) ?? []
  const init = (await pidOf(server)) ?? 0
  const [parent = 0] = childrenOf(init)
  const dead = childrenOf(parent)
  expect(dead).toHaveLength(Number(count))
  return { tree: [init, parent, ...dead], why }
}

/** Stops the server, which is deaf to all but SIGKILL: nothing of that may be left, as soon as of any other. */
async function expectEnd(server: string, tree: readonly number[]): Promise<void> {
  const began = performance.now()
  await client.call('servers/stop', { server })
  const tookMs = performance.now() - began
  expect(tree.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([])
  expect(tookMs).toBeLessThan(await stretched(ladder.eof_ms + ladder.term_ms + 500))
}

test('8: a server that waits for none of its children may leave as many as its profile gives it processes, and no other has fewer', async () => {
  const { tree, why } = await leave('few')
  expect(why).toBe('Resource temporarily unavailable')
  expect(tree).toHaveLength(1 + usualPids)
  expect(await call('echo', 'echo')).toMatchObject({ type: 'output' })
  await expectEnd('few', tree)
})

test(`8: ${zombies} of them hold up no call of others, cost the daemon little and end with their server`, async () => {
  await call('echo', 'echo')
  const { tree, why } = await leave('many')
  expect([tree.length, why]).toEqual([2 + zombies, 'Success'])
  const { pid } = client.hello
  const [began, used] = [performance.now(), processorS(pid)]
  const wallS = (): number => (performance.now() - began) / 1000
  while (wallS() < 4) {
    expect(await orLate(call('echo', 'echo'), 2000)).toMatchObject({ type: 'output' })
    await delay(200)
  }
  expect((processorS(pid) - used) / wallS()).toBeLessThan(0.3)
  await expectEnd('many', tree)
})
