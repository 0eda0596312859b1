// Hosts: those that call through the control socket, those with a session through the shim, the slow and the vanishing.
import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { connect as dial } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Client } from '../../src/client/client.ts'
import type { Account } from './account.ts'
import { endOf, parsed } from './answer.ts'
import type { Chance } from './chance.ts'
import type { Ledger } from './ledger.ts'
import { speaker } from '../support/speaker.ts'
import { hear } from './secrets.ts'
import { hostileWays, kindWays } from './servers.ts'
import type { Stage } from './stage.ts'

/** What a host needs to know. */
export interface World {
  readonly stage: Stage
  readonly ledger: Ledger
  /** Names of the servers that write down what they do */
  readonly servers: readonly string[]
  /** Ends the storm */
  readonly signal: AbortSignal
}

const shim = fileURLToPath(new URL(`../../dist/libexec/${process.arch}/sallyport-stdio`, import.meta.url))
const packages = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

const choose = (chance: Chance, servers: readonly string[]): { server: string; way: string } => {
  const server = chance.pick(servers)
  return { server, way: chance.pick(server === 'hostile' ? hostileWays : kindWays) }
}

/** A host on the control socket: calls, takes back, starts, stops, launches, asks for nonsense, goes away and comes back. */
export async function controlHost(world: World, chance: Chance): Promise<void> {
  const { stage, ledger, signal, servers } = world
  let name = 0
  while (!signal.aborted) {
    const host = await stage.at.connect('host').catch(() => null)
    if (host === null) {
      await delay(chance.between(20, 200))
      continue
    }
    await using _ = host
    const acts: Record<string, () => Promise<unknown>> = {
      call: () => call(world, host, choose(chance, servers), chance),
      burst: () =>
        Promise.all(Array.from({ length: 12 }, () => call(world, host, choose(chance, servers), chance))),
      cancel: () => {
        const limit = AbortSignal.timeout(chance.between(1, 300))
        return call(world, host, choose(chance, servers), chance, limit)
      },
      start: () => said('start', host.call('servers/start', { server: chance.pick(servers) })),
      storm: () => said('start', host.call('servers/start', { server: 'stormy' })),
      stop: () => said('stop', host.call('servers/stop', { server: chance.pick(servers) })),
      list: () => said('list', host.call('tools/list', { all: true })),
      launch: () => launch(world, host, `mine-${process.pid}-${name++ % 3}`, chance),
      nonsense: () => nonsense(world, chance),
    }
    const said = (what: string, made: Promise<unknown>) => ledger.settled(what, made)
    for (let left = chance.between(1, 20); left > 0 && !signal.aborted; left--) {
      const act = chance.weighed([
        [12, 'call'],
        [2, 'burst'],
        [2, 'cancel'],
        [1, 'start'],
        [0.3, 'storm'],
        [1, 'stop'],
        [1, 'list'],
        [1, 'launch'],
        [1, 'nonsense'],
      ] as const)
      stage.account.count('hosts', act)
      const done = acts[act]?.()
      // One in ten goes away while it is waiting.
      if (
        chance.percent(10) &&
        (await Promise.race([done, delay(chance.between(0, 150), 'gone')])) === 'gone'
      ) {
        stage.account.count('hosts', 'vanish')
        await host[Symbol.asyncDispose]()
      }
      if ((await done) === 'ERR_DAEMON_UNAVAILABLE') break
    }
  }
}

async function call(
  { stage, ledger }: World,
  host: Client,
  { server, way }: { readonly server: string; readonly way: string },
  chance: Chance,
  signal?: AbortSignal,
): Promise<string> {
  const token = ledger.open(server, way)
  const args = { token, way, ms: chance.between(1, 300) }
  const made = host.call('tools/call', { server, tool: 'effect', arguments: args }, { signal })
  let answer: string | null = null
  const noted = async (): Promise<void> => {
    const result = await made
    answer = result.type
    hear(stage.account, `a caller of ${server}`, JSON.stringify(result))
  }
  const settled = await ledger.settled(`${way} of ${server} (${token})`, noted())
  const end = answer === 'error' ? 'an error of the server’s' : settled
  ledger.close(token, end)
  stage.account.count('ways', way)
  return end
}

async function launch({ ledger }: World, host: Client, server: string, chance: Chance): Promise<string> {
  const request = {
    name: server,
    command: 'node',
    args: ['/app/chaotic.mjs'],
    package: { source: packages, target: '/app' },
  }
  const end = await ledger.settled(`the launch of ${server}`, host.call('servers/launch', request))
  const args = { token: 'nobody writes it down', way: chance.pick(hostileWays) }
  // What it launches has the timeouts that are the default, which no run has the time for.
  const signal = AbortSignal.timeout(5000)
  await ledger.settled(
    `a call of ${server}`,
    host.call('tools/call', { server, tool: 'effect', arguments: args }, { signal }),
  )
  if (chance.percent(70))
    await ledger.settled(`the end of ${server}`, host.call('servers/remove', { server }))
  return end
}

const oddities = [
  'not json',
  '[]',
  '{"jsonrpc":"2.0","id":1,"method":"nothing/such"}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"server":"plain","server":"hostile","tool":"effect"}}',
  `{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(100_000)}"}`,
  '\u0000\u0000',
]

/** A connection that says what no host should, perhaps only half of it, and is cut. */
async function nonsense({ stage }: World, chance: Chance): Promise<void> {
  const socket = dial(join(stage.at.runtimeDir, 'host/host.sock'))
  socket.on('error', () => undefined).resume()
  const closed = new Promise((resolve) => socket.once('close', resolve))
  for (let lines = chance.between(1, 5); lines > 0; lines--) socket.write(`${chance.pick(oddities)}\n`)
  if (chance.percent(50)) socket.write('{"jsonrpc":"2.0","id":')
  await Promise.race([closed, delay(chance.between(1, 50))])
  socket.destroy()
}

/** A host with a session through the shim. How it ends is its own: it closes, is killed, or stops to read before it does. */
export async function sessionHost(world: World, chance: Chance): Promise<void> {
  const { stage, ledger, signal, servers } = world
  while (!signal.aborted) {
    const server = chance.pick(servers)
    const child = shimTo(server, stage)
    const ended = once(child, 'exit')
    const session = new Session(child, stage.account, ledger)
    const said = await session.introduce(server === 'shared')
    const isUp = said === 'done'
    stage.account.count('sessions', `${server} ${said}`)
    for (let left = isUp ? chance.between(0, 6) : 0; left > 0 && !signal.aborted; left--) {
      const way = chance.pick(server === 'hostile' ? hostileWays : kindWays)
      const calls = Array.from({ length: chance.between(1, 4) }, () =>
        session.effect(world, server, way, chance),
      )
      // Not every host waits.
      if (chance.percent(80)) await Promise.all(calls)
    }
    const end = chance.pick(['closes', 'closes', 'is killed', 'stops to read'] as const)
    stage.account.count('hosts', end)
    if (end === 'stops to read') {
      child.stdout.pause()
      void session.effect(world, server, 'flood', chance)
      await delay(chance.between(100, 1500))
      if (chance.percent(50)) child.stdout.resume()
    }
    if (end === 'closes') child.stdin.end()
    else child.kill('SIGKILL')
    await Promise.race([ended, delay(5000, null, { ref: false })])
    child.kill('SIGKILL')
    child.stdout.destroy()
    await ended
    await delay(chance.between(10, 300))
  }
}

/** A shim that begins a session of a server. */
export const shimTo = (server: string, { at }: Stage): ChildProcessByStdio<Writable, Readable, null> =>
  spawn(shim, [server, '--no-autostart'], { env: at.env, stdio: ['pipe', 'pipe', 'ignore'] })

/** A session as its host keeps it: requests that wait, and an end that answers them all. */
export class Session {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (end: string) => void>()
  readonly #answered = new Set<number>()
  readonly #account: Account
  readonly #ledger: Ledger
  #id = 0
  #cut: string | null = null
  #isStateless = false

  constructor(child: ChildProcess, account: Account, ledger: Ledger) {
    this.#child = child
    this.#account = account
    this.#ledger = ledger
    // A shim that is killed with what nobody read resets its streams.
    for (const stream of [child.stdin, child.stdout]) stream?.on('error', () => undefined)
    child.once('exit', () => {
      for (const end of this.#waiting.values()) end('lost')
      this.#waiting.clear()
    })
    if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', (line) => this.#hear(line))
  }

  /** `done`, or why there is no session to be had. */
  async introduce(isStateless: boolean): Promise<string> {
    this.#isStateless = isStateless
    if (isStateless)
      return Promise.race([this.#ask('server/discover', {}), delay(20_000, 'late', { ref: false })])
    const clientInfo = { name: 'chaos', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo }
    const end = await Promise.race([this.#ask('initialize', params), delay(20_000, 'late', { ref: false })])
    if (end !== 'done') return end
    this.#say({ method: 'notifications/initialized' })
    return Promise.race([this.#ask('tools/list', {}), delay(20_000, 'late', { ref: false })])
  }

  /** Resolves with how it ended. */
  async effect(
    { ledger, stage }: Pick<World, 'ledger' | 'stage'>,
    server: string,
    way: string,
    chance: Chance,
  ): Promise<string> {
    const token = ledger.open(server, way)
    stage.account.count('ways', way)
    const args = { token, way, ms: chance.between(1, 300) }
    const made = this.#ask('tools/call', { name: 'effect', arguments: args })
    const late = await ledger.settled(`${way} of ${server} in a session (${token})`, made)
    const end = late === 'late' ? late : await made
    ledger.close(token, end)
    return end
  }

  #ask(method: string, params: object): Promise<string> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return Promise.resolve('lost')
    const id = ++this.#id
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#waiting.set(id, resolve)
    this.#say({ id, method, params: this.#isStateless ? { _meta: speaker, ...params } : params })
    return promise
  }

  #say(message: object): void {
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  #hear(line: string): void {
    hear(this.#account, 'a session', line)
    if (this.#cut !== null)
      this.#account.breaks('lines', `a session went on after ${this.#cut.slice(0, 200)}`)
    const message = parsed(line)
    if (message === null) {
      this.#cut = line
      return
    }
    const { id, method } = message
    if (typeof id !== 'number' || method !== undefined) return
    if (id > this.#id || this.#answered.has(id))
      this.#account.breaks('answers', `a session was told twice, or unasked: ${line.slice(0, 200)}`)
    this.#answered.add(id)
    const { end, words } = endOf(message)
    this.#ledger.refused(end, words)
    this.#waiting.get(id)?.(end)
    this.#waiting.delete(id)
  }
}
