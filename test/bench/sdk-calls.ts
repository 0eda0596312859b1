// What a host that is written with the SDK feels: its client, a server of the SDK's, and what lies between them. Calls a second
// with 64 in flight, one call at a time, and a result of 1 MiB; beside them what any process in between costs here. Run after npm run build: node test/bench/sdk-calls.ts [rounds] [calls]
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { createTransport } from '../../src/client/transport.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { fixture as pathOf } from '../support/plain-launch.ts'
import { tempDir } from '../support/temp-dir.ts'
import { descendantsOf } from '../support/leaks.ts'
import { reasonOf } from '../support/reason.ts'
import { Undoing } from '../support/broken-off.ts'
import { bareSandbox } from './bubblewrap.ts'
import { compile } from './compile.ts'
import { type Command, containers } from './containers.ts'
import { counts } from './counts.ts'
import { type Arm, type Bound, boundBy, type Judged, median, publish } from './figures.ts'
import { type Gateway, gateways, startGateway } from './gateways.ts'
import { besideLong, longAnswers, longNames } from './long-answers.ts'
import { install, nameOf } from './peers.ts'
import { endNow, srtCommand } from './starts.ts'
import { byTurns, type Measured } from './turns.ts'

const inFlight = 64
const trip = 3000
const mebibyte = 1024 * 1024
const { rounds, calls } = counts({ rounds: 7, calls: 1500 })
/** V8 compiles what is called often for some ten thousand calls, on the same two processors: that is a price of a start, and no call's */
const warmUpMs = Math.min(4000, 3 * calls)
const few = Math.ceil(calls / 10)
const root = fileURLToPath(new URL('../..', import.meta.url))
const shim = `${root}dist/libexec/${process.arch}/sallyport-stdio`
const script = pathOf('sdk-echo.mjs')
const pipeNames = {
  one: 'one byte pipe in C',
  two: 'two byte pipes in C',
  node: 'one byte pipe in Node',
} as const
const chainNames = ['two processes in C', 'three processes in C', 'four processes in C'] as const

/** What lies between, by name, each with a client of its own. */
interface Way {
  readonly name: string
  readonly kind: Arm['kind']
  readonly client: Client
}

await using stack = new Undoing()
const folder = await stack.starting(() => tempDir())
const pipe = compile('byte-pipe', folder.path)
const { ways, absent } = await connectAll()
const over = (measure: (client: Client) => Promise<number>): readonly Measured[] =>
  ways.map(({ name, kind, client }) => ({ name, kind, once: () => measure(client) }))
for (const { client } of ways) await warmUp(client)
const rate = await byTurns(over(flood), rounds)
const latency = await byTurns(over(oneByOne), rounds)
const large = await byTurns(over(fill), rounds)
const trips = await byTurns(chains(), rounds)
const longTrips = await byTurns(longAnswers(folder.path), rounds)
const held = [...large, ...besideLong(large, longTrips)]
const heldBy = (between: 1 | 2): Bound => boundBy('percent added', held, longNames[between])
const oneMore = boundBy('added', trips, chainNames[1])
const twoMore = boundBy('added', trips, chainNames[2])
publish([
  {
    id: 'calls',
    what: `calls a second, client and server of the SDK, ${inFlight} in flight`,
    unit: 'calls/s',
    arms: [...rate, ...absent],
    judged: [
      judged('sallyport-stdio', rate, { by: 'percent', target: 80, isAtLeast: true }),
      judged('host.sock', rate, { by: 'percent', target: 80, isAtLeast: true }),
    ],
    note: 'bubblewrap alone, srt and docker run put a wall around the server and look at nothing that is said; the gateways and the proxy hand on what is said and put up no wall.',
  },
  {
    id: 'latency',
    what: 'one call at a time, client and server of the SDK, median of a round',
    unit: 'µs',
    arms: [...latency, ...absent],
    judged: [
      judged('host.sock', latency, { by: 'added', target: 60 }, [oneMore]),
      judged('sallyport-stdio', latency, { by: 'added', target: 110 }, [twoMore]),
    ],
  },
  {
    id: 'large',
    what: 'a result of 1 MiB, median of a round',
    unit: 'ms',
    arms: [...held, ...absent],
    judged: [
      judged('sallyport-stdio', large, { by: 'percent added', target: 50 }, [heldBy(2)]),
      judged('host.sock', large, { by: 'percent added', target: 50 }, [heldBy(1)]),
    ],
    note: 'What processes in C add: to a direct answer is added what the same line takes longer over sockets, where one takes all of it before it hands anything on, as a daemon must that judges it, and one more passes it on. The client on the socket is Sallyport’s own, which copies a long line once; that of the others is the SDK’s.',
  },
  {
    id: 'long-answer',
    what: 'a line of 1 MiB over a socket to another process, with none, one or two in between, median of a round',
    unit: 'µs',
    arms: longTrips,
    judged: [],
    note: 'One takes all of it before it hands anything on; the second passes 64 KiB at a time.',
  },
  {
    id: 'round-trip',
    what: 'a line of 100 bytes over pipes to another process and back, through none, one or two in between, median of a round',
    unit: 'µs',
    arms: trips,
    judged: [],
    note: 'What the kernel takes to wake one process after another: the socket has one process in between, the shim two.',
  },
])

/** A target beside what as many processes reach that pass bytes on: one for the socket, two where the shim stands before it. */
function judged(
  arm: 'sallyport-stdio' | 'host.sock',
  arms: readonly Arm[],
  target: Pick<Judged, 'by' | 'target' | 'isAtLeast'>,
  more: Judged['bounds'] = [],
): Judged {
  const least = arm === 'host.sock' ? pipeNames.one : pipeNames.two
  return {
    arm,
    ...target,
    bounds: [boundBy(target.by, arms, least), boundBy(target.by, arms, pipeNames.node), ...more],
  }
}

/** One process that sends a line and one that sends it back, and none, one and two in between; median µs of many trips. */
function chains(): readonly Measured[] {
  const program = compile('round-trip', folder.path)
  return chainNames.map((name, between) => ({
    name,
    kind: between === 0 ? 'base' : 'bound',
    once: async () => {
      const args = [String(trip), ...Array.from({ length: between }, () => pipe), 'cat']
      return median(execFileSync(program, args, { encoding: 'utf8' }).trim().split('\n').map(Number))
    },
  }))
}

/** Keeps so many calls in flight; calls a second. */
async function flood(client: Client): Promise<number> {
  let left = calls
  const began = performance.now()
  await callWhile(client, () => left-- > 0)
  return calls / ((performance.now() - began) / 1000)
}

/** The same for as long a time, whatever stands between. */
async function warmUp(client: Client): Promise<void> {
  const end = performance.now() + warmUpMs
  await callWhile(client, () => performance.now() < end)
}

async function callWhile(client: Client, goesOn: () => boolean): Promise<void> {
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (goesOn()) await client.callTool({ name: 'echo', arguments: { text: 'hello' } })
    }),
  )
}

/** The median of some calls, one after another, µs. */
async function oneByOne(client: Client): Promise<number> {
  const taken: number[] = []
  for (let n = 0; n < few; n++) {
    const began = performance.now()
    await client.callTool({ name: 'echo', arguments: { text: 'hello' } })
    taken.push((performance.now() - began) * 1000)
  }
  return median(taken)
}

async function fill(client: Client): Promise<number> {
  const taken: number[] = []
  for (let n = 0; n < 10; n++) {
    const began = performance.now()
    await client.callTool({ name: 'fill', arguments: { length: mebibyte } })
    taken.push(performance.now() - began)
  }
  return median(taken)
}

async function connectAll(): Promise<{ readonly ways: readonly Way[]; readonly absent: readonly Arm[] }> {
  const server = fixture('sdk-echo', {
    package: { source: `${root}test/fixtures/servers`, target: '/app', with: [`${root}node_modules`] },
    output: { result_bytes: 4 * mebibyte },
  })
  const running = await stack.starting(() => daemon(configOf({ sdk: server })))
  const stdio = (
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    stderr: 'inherit' | 'ignore' = 'inherit',
  ): Transport =>
    new StdioClientTransport({
      command,
      args: [...args],
      env: { PATH: process.env['PATH'] ?? '', TMPDIR: folder.path, ...env },
      stderr,
    })
  const proxy = fileURLToPath(new URL('sdk-proxy.ts', import.meta.url))
  const nodePipe = fileURLToPath(new URL('node-pipe.ts', import.meta.url))
  const ways = [
    await way('direct stdio', 'base', stdio(process.execPath, [script])),
    // The least that can stand between: a process that passes bytes on, both ways.
    await way(pipeNames.one, 'bound', stdio(pipe, [process.execPath, script])),
    await way(pipeNames.two, 'bound', stdio(pipe, [pipe, process.execPath, script])),
    // And the least that does where the process in between is one of Node's.
    await way(pipeNames.node, 'bound', stdio(process.execPath, [nodePipe, process.execPath, script])),
    await way('sallyport-stdio', 'ours', stdio(shim, ['sdk', '--no-autostart'], running.env)),
    await way(
      'host.sock',
      'ours',
      createTransport({ server: 'sdk', at: { runtimeDir: running.runtimeDir } }),
    ),
    await way('SDK-built proxy', 'peer', stdio(process.execPath, [proxy, process.execPath, script])),
  ]
  const absent: Arm[] = []
  for (const [name, connecting] of others(stdio))
    try {
      const connected = await connecting()
      if ('absent' in connected) absent.push({ name, kind: 'peer', values: [], ...connected })
      else ways.push(await way(name, 'peer', connected))
    } catch (error) {
      absent.push({ name, kind: 'peer', values: [], absent: `it does not run: ${reasonOf(error)}` })
    }
  return { ways, absent }
}

type Connecting = () => Promise<Transport | { readonly absent: string }>

/** What others put between the same client and the same server: gateways a protocol, sandboxes a wall. */
function others(
  stdio: (
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    stderr: 'ignore',
  ) => Transport,
): readonly (readonly [string, Connecting])[] {
  const over = (command: Command | { readonly absent: string }) =>
    'absent' in command ? command : stdio(command[0], command.slice(1), {}, 'ignore')
  return [
    ...gateways.map((peer) => [nameOf(peer), () => gateway(peer)] as const),
    ['bubblewrap alone', async () => over(['bwrap', ...bareSandbox, process.execPath, script])],
    [
      nameOf('srt'),
      async () => {
        const srt = await srtCommand(folder.path)
        return over('absent' in srt ? srt : srt(script))
      },
    ],
    [
      'docker run',
      async () => {
        const docker = await stack.starting(containers)
        return over('absent' in docker ? docker : docker.run(script))
      },
    ],
  ]
}

async function gateway(peer: Gateway): Promise<Transport | { readonly absent: string }> {
  const program = await install(peer, folder.path)
  if (typeof program !== 'string') return program
  const { url } = await stack.starting(() => startGateway(peer, program, script))
  await eventually(() => accepts(Number(url.port)), 20_000)
  return new StreamableHTTPClientTransport(url)
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.destroy()
  return true
}

async function way(name: string, kind: Arm['kind'], transport: Transport): Promise<Way> {
  const client = new Client({ name: 'bench', version: '1.0.0' })
  await client.connect(transport)
  stack.defer(() => closed(client, transport))
  return { name, kind, client }
}

/** srt leaves its relays where its command has ended. */
async function closed(client: Client, transport: Transport): Promise<void> {
  const pid = transport instanceof StdioClientTransport ? transport.pid : null
  const below = pid === null ? [] : descendantsOf(pid)
  await client.close()
  for (const it of below) endNow(it.pid)
}
