// Hosts of a real daemon that do not read what they asked for: it waits, where it comes from or up to a bound, and nobody else does.
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { defaultLimits } from '../../src/rpc/connection-limits.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { configOf, endServe, fixture, place, serve, type Place, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { flat, livingMib, observed, residentMib, scratchOf } from '../support/holdings.ts'
import { descendantsOf } from '../support/leaks.ts'
import { inGoodTime, orLate } from '../support/pace.ts'
import { stateOf } from '../support/processes.ts'
import { bodiesOf } from '../support/witness.ts'

const mib = 1024 ** 2
const floods = 8
/** What each of them says of 1 KB, many times of what is kept of it anywhere */
const lines = 40_000
/** What is read at once, and by which a stream is full */
const chunkBytes = 65_536
const output = { line_bytes: 65_536 }
/** Of a flood: half a line, and of either stream what makes it full with what came in one piece with that */
const keptMib = (output.line_bytes + 4 * chunkBytes) / mib

/** What `huge` answers, and how many of them a host may leave unread */
const [answerBytes, unreadMib] = [4_000_000, defaultLimits.unreadBytes / mib]
const mostUnread = Math.floor(defaultLimits.unreadBytes / answerBytes)
/** How many times what is kept of an answer may be resident: as it came, as text and as it goes, until garbage is collected */
const copies = 4

let at: Place
let child: TestDaemon['process']
let client: Client
beforeAll(async () => {
  at = await place(
    configOf({
      flood: fixture('flood-stdout', { output }),
      huge: fixture('chaotic', { output: { result_bytes: 2 * answerBytes } }),
      echo: fixture('echo'),
    }),
  )
  mkdirSync(scratchOf(at), { mode: 0o700 })
  ;({ process: child, client } = await serve(at, observed(at)))
  for (const server of ['huge', 'echo']) await client.call('servers/start', { server })
  // What is loaded and compiled once is no part of what is held.
  await paces(await at.connect('host'), 50)
})
afterAll(async () => {
  await endServe({ process: child, client })
  await at[Symbol.asyncDispose]()
})
afterEach(() => expectAftermath(at, client))

const outcomesOf = (server: string): readonly unknown[] =>
  bodiesOf(at.stateDir, 'call.outcome').flatMap((one) => (one['server'] === server ? [one['outcome']] : []))
const intentsOf = (server: string): number =>
  bodiesOf(at.stateDir, 'call.intent').filter((one) => one['server'] === server).length

/** A host by the bytes: it reads until it is told not to, and keeps the answers. */
class Host implements Disposable {
  readonly answers: { readonly id: number; readonly error?: object }[] = []
  notifications = 0
  readonly socket: Socket

  private constructor(socket: Socket) {
    this.socket = socket.on('error', () => undefined)
    createInterface({ input: socket }).on('line', (line) => {
      if (line.startsWith('{"jsonrpc":"2.0","method":')) this.notifications += 1
      else if (line.endsWith('}')) this.answers.push(JSON.parse(line) as { id: number }) // else it was cut off
    })
  }

  static async open(): Promise<Host> {
    const socket = connect(join(at.runtimeDir, 'host/host.sock'))
    await once(socket, 'connect')
    return new Host(socket)
  }

  say(...messages: readonly object[]): void {
    for (const message of messages) this.socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  async ask(id: number, method: string, params: object): Promise<void> {
    this.say({ id, method, params })
    expect(await eventually(() => this.answers.find((one) => one.id === id))).not.toHaveProperty('error')
  }

  /** A session with the server that floods, which is asked to, and whose host reads nothing from then on. */
  static async flooded(how: object = { lines }): Promise<Host> {
    const host = await Host.open()
    await host.ask(1, 'session/attach', { server: 'flood' })
    const clientInfo = { name: 'host', version: '1' }
    await host.ask(2, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
    host.say({ method: 'notifications/initialized' })
    host.socket.pause()
    host.say({ id: 3, method: 'tools/call', params: { name: 'flood', arguments: how } })
    return host
  }

  /** Asks so often for more than 4 MB, and reads nothing from then on. */
  pileUp(times: number, from = 0): void {
    this.socket.pause()
    const params = { server: 'huge', tool: 'effect', arguments: { token: 't', way: 'huge' } }
    for (let id = from; id < from + times; id++) this.say({ id, method: 'tools/call', params })
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

/** How long each of so many calls of another host takes, ms. One that hangs is told as such. */
async function paces(host: Client, count: number): Promise<readonly number[]> {
  const took = []
  for (let n = 0; n < count; n++) {
    const began = performance.now()
    const call = host.call('tools/call', { server: 'echo', tool: 'echo', arguments: { n } })
    expect(await orLate(call, 5000)).toMatchObject({ type: 'output' })
    took.push(performance.now() - began)
  }
  return took
}
const p99 = (took: readonly number[]): number =>
  took.toSorted((a, b) => a - b)[Math.ceil(took.length * 0.99) - 1] ?? NaN

/** The servers of the sessions, by their pids. */
async function flooders(): Promise<readonly number[]> {
  const { instances } = await client.call('servers/get', { server: 'flood' })
  return instances.flatMap(({ pid }) => (pid === null ? [] : [descendantsOf(pid)[0]?.pid ?? 0]))
}
/** What a process has written, bytes, and what it took of a processor, hundredths of a second. */
const doneBy = (pid: number): readonly [number, number] => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ')
  const written = Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
  return [written, Number(fields[11]) + Number(fields[12])]
}

/** Until none of them has written for a while, nor done anything else: each waits. */
async function standStill(servers: readonly number[]): Promise<void> {
  const looks: string[] = []
  await eventually(() => {
    looks.push(JSON.stringify(servers.map(doneBy)))
    return looks.length > 20 && new Set(looks.slice(-20)).size === 1
  })
  expect(servers.map(stateOf)).toEqual(servers.map(() => 'S'))
}

test(`14: ${floods} servers whose floods nobody reads stand still, and cost the daemon what their streams hold and others nothing`, async () => {
  const { pid } = client.hello
  const [living, resident] = [await livingMib(at, pid), residentMib(pid)]
  const [intents, outcomes] = [intentsOf('flood'), outcomesOf('flood').length]
  const hosts = await Promise.all(Array.from({ length: floods }, () => Host.flooded()))
  await using other = await at.connect('host')
  await paces(other, 50)
  await eventually(() => intentsOf('flood') === intents + floods)
  const servers = await flooders()
  expect(servers).toHaveLength(floods)
  await standStill(servers)
  for (const [written] of servers.map(doneBy)) {
    expect(written).toBeGreaterThan(chunkBytes)
    expect(written).toBeLessThan((lines * 1000) / 4)
  }
  const added = { resident: residentMib(pid) - resident, living: (await livingMib(at, pid)) - living }
  expect(added.living).toBeLessThan(floods * keptMib + flat.livingMib)
  expect(added.resident).toBeLessThan(floods * keptMib + flat.residentMib)
  const views = (await client.call('servers/get', { server: 'flood' })).instances
  expect(views.map(({ state }) => state)).toEqual(Array<string>(floods).fill('ready'))
  expect((await at.run(['ps'])).stdout).toMatch(/^flood +ready /m)
  expect(outcomesOf('flood')).toHaveLength(outcomes)

  // Who reads has all of it, in the end its answer; who leaves takes its server along.
  const [reader, ...leavers] = hosts
  for (const host of leavers) host[Symbol.dispose]()
  reader?.socket.resume()
  await eventually(() => reader?.answers.find(({ id }) => id === 3))
  expect(reader?.notifications).toBe(lines)
  await eventually(() => outcomesOf('flood').length === outcomes + floods)
  const ends = outcomesOf('flood').slice(outcomes)
  expect(ends.filter((end) => end === 'result')).toHaveLength(1)
  expect(ends.filter((end) => end === 'lost')).toHaveLength(leavers.length)
  reader?.[Symbol.dispose]()
  await inGoodTime(() => servers.every((server) => !existsSync(`/proc/${server}`)), 5000)
  await eventually(async () => (await flooders()).length === 0)
  await eventually(async () => (await livingMib(at, pid)) - living < flat.livingMib)
})

test('14: of a gigabyte that a server writes as fast as it can nothing more comes while its host does not read, and the daemon grows by less than 96 MiB', async () => {
  const { pid } = client.hello
  const before = residentMib(pid)
  let most = before
  const timer = setInterval(() => (most = Math.max(most, residentMib(pid))), 10)
  try {
    using host = await Host.flooded({ lines: 1_000_000, together: 1000 })
    await using other = await at.connect('host')
    await eventually(async () => (await flooders()).some((one) => doneBy(one)[0] > chunkBytes))
    const [server = 0] = await flooders()
    for (const read of [0, 50_000]) {
      host.socket.resume()
      await eventually(() => host.notifications >= read)
      host.socket.pause()
      await standStill([server])
      const [written] = doneBy(server)
      expect(written).toBeLessThan((host.notifications + 4000) * 1100)
      for (const began = performance.now(); performance.now() - began < 1500;) await paces(other, 10)
      expect(doneBy(server)[0]).toBe(written)
    }
  } finally {
    clearInterval(timer)
  }
  expect(most - before).toBeLessThan(96)
  await eventually(async () => (await flooders()).length === 0)
})

test('18: a host that reads no answers has as many as are kept for it and no more of its calls taken, and others wait for none of it', async () => {
  const { pid } = client.hello
  const [living, resident] = [await livingMib(at, pid), residentMib(pid)]
  await using other = await at.connect('host')
  const [alone, beside]: [number[], number[]] = [[], []]
  const [turns, calls, few] = [3, 34, 3]
  for (let turn = 0; turn < turns; turn++) {
    alone.push(...(await paces(other, calls)))
    using slow = await Host.open()
    const before = outcomesOf('huge').length
    slow.pileUp(few)
    beside.push(...(await paces(other, calls)))
    await eventually(() => outcomesOf('huge').length === before + few)
  }
  // Whoever stood behind it would wait until it reads.
  expect(p99(beside) / p99(alone)).toBeLessThan(20)

  const before = intentsOf('huge')
  using slow = await Host.open()
  slow.pileUp(mostUnread)
  await eventually(() => outcomesOf('huge').length === before + mostUnread)
  // It has them all waiting, and asks for more: that is not even read.
  slow.pileUp(5, mostUnread)
  await paces(other, calls)
  const added = { resident: residentMib(pid) - resident, living: (await livingMib(at, pid)) - living }
  expect(added.living).toBeGreaterThan((mostUnread - 2) * (answerBytes / mib))
  expect(added.living).toBeLessThan(unreadMib + flat.livingMib)
  expect(added.resident).toBeLessThan(copies * unreadMib + flat.residentMib)
  expect(intentsOf('huge')).toBe(before + mostUnread)
  slow.socket.resume()
  await eventually(() => slow.answers.length >= mostUnread + 5)
  expect(slow.answers.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: mostUnread + 5 }, (_, id) => id),
  )
  expect(slow.answers.filter(({ error }) => error !== undefined)).toEqual([])
  await eventually(() => outcomesOf('huge').length === before + mostUnread + 5)
  expect(
    outcomesOf('huge')
      .slice(-mostUnread)
      .every((outcome) => outcome === 'result'),
  ).toBe(true)
})

test('18: a host that leaves more unread than is kept for it is cut off, each of its calls has one end, and others go on', async () => {
  const { pid } = client.hello
  const [living, before] = [await livingMib(at, pid), intentsOf('huge')]
  const outcomes = outcomesOf('huge').length
  await using other = await at.connect('host')
  using slow = await Host.open()
  const asked = mostUnread + 5
  slow.pileUp(asked)
  await paces(other, 50)
  await eventually(() => outcomesOf('huge').length === outcomes + asked)
  expect(intentsOf('huge')).toBe(before + asked)
  slow.socket.resume()
  await eventually(() => slow.socket.destroyed)
  expect(slow.answers.length).toBeLessThan(asked)
  await paces(other, 50)
  await eventually(async () => (await livingMib(at, pid)) - living < flat.livingMib)
  expect((await at.run(['ps'])).stdout).toMatch(/^huge +ready /m)
})
