// What servers and hosts do to a real daemon, as docs/faults.md lists it: of each what its caller is told, what the journal
// and `ps` say, and what is on the machine then and once the server is stopped.
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { configOf, endServe, fixture, place, serve, type Place, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { descendantsOf } from '../support/leaks.ts'
import { stretched } from '../support/pace.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { bodiesOf } from '../support/witness.ts'

interface Row {
  readonly title: string
  readonly way: string
  /** The caller's: `output`, or a code */
  readonly told: string
  readonly outcome: 'result' | 'lost' | 'timeout' | 'error'
  /** What the record says of it; null where there is nothing to say */
  readonly why: RegExp | null
  /** Whether its process is the same afterwards */
  readonly isSame: boolean
}

const lost = { told: 'ERR_SERVER_UNAVAILABLE', outcome: 'lost', isSame: false } as const
const unmoved = { told: 'output', outcome: 'result', why: null, isSame: true } as const
const rows: readonly Row[] = [
  { title: '4: a server that ignores signals', way: 'deaf', ...unmoved },
  { title: '6: a server whose children leave its session and its streams', way: 'leaves', ...unmoved },
  { title: '8: a server that forks until it may no more', way: 'bombs', ...unmoved },
  { title: '8: a server that starts threads until it may no more', way: 'threads', ...unmoved },
  {
    title: '11: a server that is killed in a call',
    way: 'dies',
    ...lost,
    why: /it was ended by signal 9$|it ended by itself$/,
  },
  { title: '14: a server that floods its output', way: 'flood', ...unmoved },
  {
    title: '15: a server whose line has no end',
    way: 'endless',
    ...lost,
    told: 'ERR_RESULT_TOO_LARGE',
    why: /output\.line_bytes/,
  },
  { title: '16: a server that floods stderr', way: 'shouts', ...unmoved },
  { title: '17: a server that says garbage', way: 'garbage', ...unmoved },
  { title: '21: a server that closes its output', way: 'closes', ...lost, why: /closed its output$/ },
  {
    title: '26: a server one of whose processes uses up the memory',
    way: 'hog',
    ...lost,
    why: /memory limit$/,
  },
]

const profile = {
  version: 1,
  name: 'small',
  extends: 'node',
  limits: { memory_bytes: 201_326_592, pids: 64 },
}
/** Each of Node's threads has a heap of its own. */
const threaded = { ...profile, name: 'threaded', limits: { memory_bytes: 536_870_912, pids: 32 } }
const small = { stderr_bytes: 65_536 }
const ladder = { eof_ms: 100, term_ms: 300 }
const entry = (script = 'chaotic', output: object = { line_bytes: 65_536 }, { name } = profile): object =>
  fixture('chaotic', {
    args: [`/app/${script}.mjs`],
    profile: name,
    output,
    restart: { schedule_s: [0.1], jitter: 0, steady_s: 60, storm: 1000, start_attempts: 1 },
    timeouts: { call_ms: 50_000 },
    stop: ladder,
  })

/** What no shell would carry */
const odd = ['a\nb', '', ' ', '--help', '$(true)', 'ü\u0001\u2028😀']
/** As long as the kernel lets an argument be, or a variable with its name: MAX_ARG_STRLEN, without the NUL */
const longest = { argument: 'x'.repeat(131_071), variable: 'x'.repeat(131_071 - 'ODD6='.length) }

let at: Place
let child: TestDaemon['process']
let client: Client
beforeAll(async () => {
  const names = rows.map(({ way }) => way)
  const servers = Object.fromEntries(names.map((name) => [name, entry()]))
  const threads = entry('chaotic', {}, threaded)
  const strange = {
    ...entry(),
    args: ['/app/chaotic.mjs', '-', ...odd, longest.argument],
    env: Object.fromEntries([...odd, longest.variable].map((value, n) => [`ODD${n}`, value])),
  }
  const longer = { ...entry(), args: ['/app/chaotic.mjs', '-', `${longest.argument}x`] }
  at = await place(
    configOf({
      ...servers,
      threads,
      strange,
      longer,
      plain: entry('chaotic', small),
      absent: entry('absent'),
    }),
  )
  await mkdir(join(at.folder, 'profiles'), { mode: 0o700 })
  for (const one of [profile, threaded])
    await writeFile(join(at.folder, `profiles/${one.name}.yaml`), JSON.stringify(one), { mode: 0o600 })
  ;({ process: child, client } = await serve(at))
})
afterAll(async () => {
  await endServe({ process: child, client })
  await at[Symbol.asyncDispose]()
})
afterEach(() => expectAftermath(at, client))

/** `output`, or the code of the refusal. */
const call = (server: string, way: string, by: Client = client): Promise<unknown> =>
  by.call('tools/call', { server, tool: 'effect', arguments: { token: 't', way } }).then(
    ({ type }) => type,
    ({ code }: { code?: unknown }) => code,
  )
const instance = async (server: string, of = 'control') =>
  (await client.call('servers/get', { server })).instances.find(({ purpose }) => purpose === of)
const endsOf = (server: string) =>
  bodiesOf(at.stateDir, 'call.outcome').filter((one) => one['server'] === server)
const outcomesOf = (server: string): readonly unknown[] => endsOf(server).map(({ outcome }) => outcome)
/** What an instance became, with when, until nothing of it was left. */
async function endOf(id: string): Promise<readonly { readonly to: unknown; readonly ms: number }[]> {
  const states = []
  for await (const { type, instance: which, at: when, detail } of client.events({ since: 0 })) {
    if (type !== 'instance/state' || which !== id) continue
    states.push({ to: detail['to'], ms: Date.parse(when) })
    if (detail['to'] === 'stopped') break
  }
  return states
}
/** Why its processes came to be as they are, until one is ready again. */
async function reasonsOf(name: string): Promise<readonly unknown[]> {
  const reasons = []
  for await (const { type, server, detail } of client.events({ since: 0 })) {
    if (type !== 'instance/state' || server !== name) continue
    reasons.push(detail['reason'])
    if (detail['to'] === 'ready' && reasons.some((reason) => reason !== null)) break
  }
  return reasons
}
const intentsOf = (server: string): number =>
  bodiesOf(at.stateDir, 'call.intent').filter((one) => one['server'] === server).length

test.each(rows)('$title: its call ends once, and nothing of it is left', async (row) => {
  const { way, told, outcome, why, isSame } = row
  const earlier = outcomesOf(way).length
  expect(await call(way, 'honest')).toBe('output')
  const { pid: before } = (await instance(way)) ?? {}
  expect(await call(way, way)).toBe(told)
  await eventually(() => outcomesOf(way).length === earlier + 2)
  expect(outcomesOf(way).slice(earlier)).toEqual(['result', outcome])
  if (why !== null) expect(endsOf(way).at(-1)?.['detail']).toMatch(why)
  if (way === 'hog')
    expect(await reasonsOf(way)).toContain('it was killed because it went over its memory limit')
  const { pid } = await eventually(async () => {
    const view = await instance(way)
    return view?.state === 'ready' && (view.pid === before) === isSame && view
  })
  const tree = [pid ?? 0, ...descendantsOf(pid ?? 0).map((one) => one.pid)]
  await client.call('servers/stop', { server: way })
  expect(tree.filter((one) => existsSync(`/proc/${one}`))).toEqual([])
  expect(await instance(way)).toMatchObject({ state: 'stopped', pid: null })
})

test('4: a server that is deaf to the end of its input and to SIGTERM is given both its times, then killed', async () => {
  await call('deaf', 'deaf')
  const { pid, id } = await eventually(() => instance('deaf'))
  const tree = [pid ?? 0, ...descendantsOf(pid ?? 0).map((one) => one.pid)]
  const before = intentsOf('deaf')
  const waiting = call('deaf', 'silent')
  await eventually(() => intentsOf('deaf') > before)
  await client.call('servers/stop', { server: 'deaf' })
  expect(tree.filter((one) => existsSync(`/proc/${one}`))).toEqual([])
  expect(await waiting).toBe('ERR_SERVER_UNAVAILABLE')
  await eventually(() => outcomesOf('deaf').length === before + 1)
  expect(outcomesOf('deaf').at(-1)).toBe('lost')
  const { lines } = await client.call('servers/logs', { server: 'deaf' })
  expect(lines.slice(-2)).toEqual(['ignored the end of its input', 'ignored SIGTERM'])
  const [draining, stopping, stopped] = (await endOf(id)).slice(-3)
  expect([draining?.to, stopping?.to, stopped?.to]).toEqual(['draining', 'stopping', 'stopped'])
  // The daemon's clock of records is not the one by which it waits.
  expect((stopping?.ms ?? 0) - (draining?.ms ?? 0)).toBeGreaterThan(ladder.eof_ms - 10)
  expect((stopped?.ms ?? 0) - (stopping?.ms ?? 0)).toBeGreaterThan(ladder.term_ms - 10)
  const most = await stretched(ladder.eof_ms + ladder.term_ms + 500)
  expect((stopped?.ms ?? 0) - (draining?.ms ?? 0)).toBeLessThanOrEqual(most)
  expect(await instance('deaf')).toMatchObject({
    state: 'stopped',
    pid: null,
    reason: 'operator 0 stopped it; it was killed',
  })
})

test('4: what a session’s host asks while its deaf server is given its times is refused at once, by name', async () => {
  using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await host.ask('session/attach', { server: 'deaf' })
  const clientInfo = { name: 'host', version: '1' }
  await host.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  host.tell('notifications/initialized')
  const ask = (way: string) => host.ask('tools/call', { name: 'effect', arguments: { token: 't', way } })
  await ask('deaf')
  const stopped = client.call('servers/stop', { server: 'deaf' })
  await eventually(async () =>
    ['draining', 'stopping'].includes((await instance('deaf', 'session'))?.state ?? ''),
  )
  for (let n = 0; n < 3; n++)
    expect(await ask('honest')).toMatchObject({
      error: {
        message: expect.stringMatching(/^mcp server deaf is unavailable: .*stopped it/),
        data: { code: 'ERR_SERVER_UNAVAILABLE' },
      },
    })
  await stopped
})

test('16: of a flood of stderr the newest is kept, and every byte that is not is counted', async () => {
  const { stderr_bytes: kept } = small
  await call('plain', 'shouts')
  await eventually(async () => {
    const { lines, dropped } = await client.call('servers/logs', { server: 'plain' })
    expect(lines.at(-1)).toBe('x'.repeat(1000))
    expect(dropped + kept).toBe(2000 * 1001)
    return true
  })
  const { id } = await eventually(() => instance('plain'))
  await client.call('servers/stop', { server: 'plain' })
  const records = await eventually(() => {
    const found = bodiesOf(at.stateDir, 'logs.dropped').filter((one) => one['server'] === 'plain')
    return found.length > 0 && found
  })
  expect(records).toMatchObject([
    { server: 'plain', instance: id, principal: String(process.getuid?.()), bytes: 2000 * 1001 - kept },
  ])
})

test('6: what a server leaves to itself is counted while it runs, for the host and in `ps`, and ends with the server', async () => {
  await call('leaves', 'honest')
  expect(await instance('leaves')).toMatchObject({ state: 'ready', orphans: 0 })
  await call('leaves', 'leaves')
  await eventually(async () => (await instance('leaves'))?.orphans === 1)
  const { pid } = await eventually(() => instance('leaves'))
  const { stdout } = await at.run(['ps'])
  expect(stdout).toMatch(/^leaves .*\b1 process left to itself$/m)
  expect((await at.run(['show', 'leaves'])).stdout).toContain('left to themselves: 1')
  const [orphan] = descendantsOf(pid ?? 0).filter(({ name }) => name === 'sleep')
  await client.call('servers/stop', { server: 'leaves' })
  expect(await instance('leaves')).toMatchObject({ state: 'stopped', orphans: null })
  expect(existsSync(`/proc/${orphan?.pid}`)).toBe(false)
})

test('22: a server has arguments and variables of any letters, and as long as they may be, as they were written', async () => {
  expect(await call('strange', 'honest')).toBe('output')
  const { pid } = (await instance('strange')) ?? {}
  const server = descendantsOf(pid ?? 0)[0]?.pid
  const read = (name: string): readonly string[] =>
    readFileSync(`/proc/${server}/${name}`, 'utf8').slice(0, -1).split('\0')
  expect(read('cmdline').slice(-odd.length - 1)).toEqual([...odd, longest.argument])
  const variables = [...odd, longest.variable].map((value, n) => `ODD${n}=${value}`)
  expect(read('environ')).toEqual(expect.arrayContaining(variables))
  expect((await at.run(['ps'])).stdout).toMatch(/^strange +ready /m)
  await eventually(() => outcomesOf('strange').length === 1)
  expect(outcomesOf('strange')).toEqual(['result'])
  await client.call('servers/stop', { server: 'strange' })
  expect(existsSync(`/proc/${server}`)).toBe(false)
})

test('22: a server with an argument that is longer than that is given up by name, and no call is sent', async () => {
  const most = 'args[2] has 131072 bytes, 131071 is the most'
  await expect(client.call('servers/start', { server: 'longer' })).rejects.toMatchObject({
    code: 'ERR_ARGUMENT_REFUSED',
    message: expect.stringContaining(most) as string,
  })
  expect(await client.call('servers/get', { server: 'longer' })).toMatchObject({ state: 'failed' })
  expect(intentsOf('longer')).toBe(0)
})

test('22: a server whose program is not there is given up by name, and no call is sent', async () => {
  expect(await call('absent', 'honest')).toBe('ERR_ARGUMENT_REFUSED')
  expect(await client.call('servers/get', { server: 'absent' })).toMatchObject({ state: 'failed' })
  expect(intentsOf('absent')).toBe(0)
})

test('19: the call of a host that goes away is cancelled, and its server serves on', async () => {
  await call('plain', 'honest')
  const { pid } = (await instance('plain')) ?? {}
  const before = intentsOf('plain')
  const host = await at.connect('host')
  const told = call('plain', 'silent', host)
  await eventually(() => intentsOf('plain') > before)
  await host[Symbol.asyncDispose]()
  expect(await told).toBe('ERR_DAEMON_UNAVAILABLE')
  await eventually(() => outcomesOf('plain').at(-1) === 'cancelled')
  expect(await call('plain', 'honest')).toBe('output')
  expect((await instance('plain'))?.pid).toBe(pid)
})
