// What the way out costs a program in a sandbox, through the whole daemon (resolver, relay, door, and where a credential is
// carried the swap), beside a direct connection, what bounds it, and, with --peers, srt. The same client measures all, by turns in
// one run. Run after npm run build: node test/bench/egress.ts [rounds] [--peers]. It needs what a launch needs, and `cc`; srt comes from npm,
// into a folder that is removed, and needs bwrap, socat and rg. All but srt's client, which names an address to its proxy, look
// the host's name up by getaddrinfo: direct in a file of names, in the sandbox as there.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { testAuthority } from '../support/certificates.ts'
import { configOf, fixture, place, serve } from '../support/daemon.ts'
import { tempDir } from '../support/temp-dir.ts'
import { besideOf, type Client, direct, pssOf, srt } from './clients.ts'
import { Undoing } from '../support/broken-off.ts'
import { compile } from './compile.ts'
import { counts } from './counts.ts'
import { address, hosts, megabytes } from './egress-setting.ts'
import { type Arm, boundBy, type Figure, publish } from './figures.ts'
import { nameOf } from './peers.ts'
import { byTurns, type Measured } from './turns.ts'

const atOnce = 200
const srtName = nameOf('srt')
const token = 'bench_0123456789abcdef0123456789abcdef'
/** What passes bytes on, as often as the relay and the door do, and in what they are written; what ends TLS and begins it again, as a swap does */
const bounds = {
  one: 'one relay in C',
  two: 'two relays in C',
  node: 'a relay in C and a bare one in Node',
  tls: 'bare TLS proxy in Node',
} as const

interface Way {
  readonly name: string
  readonly kind: Arm['kind']
  readonly client: Client
  readonly to: Readonly<Record<string, unknown>>
}

const words = process.argv.slice(2)
const { rounds } = counts(
  { rounds: 300 },
  words.filter((word) => word !== '--peers'),
)
await using stack = new Undoing()
const dir = await stack.starting(tempDir)
await chmod(dir.path, 0o755)
const { ca, caFile, issue } = await testAuthority(dir.path)
const certificate = JSON.stringify(await issue(hosts.swap))
const port = await startEnd('host', certificate)
const relays: ChildProcess[] = []
const ways = await allWays()
const absent = await addPeer()

/** What takes long is done a few times */
const few = Math.min(rounds, 5)
await byTurns(over('request', { path: '/' }), rounds) // as many again, which V8 compiles meanwhile
const fresh = await byTurns(over('request', { path: '/' }), rounds)
const down = await byTurns(over('request', { path: '/big' }, speedOf), few)
const crowd = await byTurns(over('crowd', { count: atOnce }), few)
publish([
  {
    id: 'egress',
    what: 'a new TLS connection and one request, from a sandbox through the whole daemon',
    unit: 'ms',
    arms: [...fresh, ...absent],
    judged: [
      {
        arm: 'tunnel',
        by: 'added',
        target: 1,
        bounds: [boundBy('added', fresh, bounds.two), boundBy('added', fresh, bounds.node)],
      },
      { arm: 'swap', by: 'added', target: 3, bounds: [boundBy('added', fresh, bounds.tls)] },
    ],
    note: 'Two relays: as many as stand in a tunnel, in C, and the second in Node, as the door is, which dials when it has heard the hello; neither looks at anything. The bare TLS proxy looks at nothing, and no sandbox is before it.',
  },
  {
    id: 'download',
    what: `a download of ${megabytes} MB over TLS`,
    unit: 'MB/s',
    arms: [...down, ...absent],
    judged: [],
  },
  {
    id: 'crowd',
    what: `${atOnce} such connections at once, until the last is done`,
    unit: 'ms',
    arms: [...crowd, ...absent],
    judged: [],
  },
  await memory(),
])

/** One measurement of each way: what the client's tool says, ms, as `read` has it. */
function over(tool: string, args: object, read = (ms: number): number => ms): readonly Measured[] {
  return ways.map(({ name, kind, client, to }) => ({
    name,
    kind,
    once: async () => read((await client.ask(tool, { way: to, ...args })).ms),
  }))
}

function speedOf(ms: number): number {
  return megabytes / (ms / 1000)
}

async function allWays(): Promise<Way[]> {
  const names = Object.values(hosts)
  const bare = await stack.starting(() => direct(dir.path, names, address))
  const ours = await throughDaemon()
  const to = (toPort: number) => ({ host: hosts.tunnel, port: toPort, name: hosts.tunnel, ca, token })
  const swapped = { host: hosts.swap, port, name: hosts.swap }
  const one = await startRelay(port)
  const two = await startRelay(one)
  const node = await startRelay(await startEnd('relay', String(port)))
  const proxy = await startEnd('proxy', certificate, String(port), ca)
  return [
    { name: 'direct', kind: 'base', client: bare, to: to(port) },
    { name: bounds.one, kind: 'bound', client: bare, to: to(one) },
    { name: bounds.two, kind: 'bound', client: bare, to: to(two) },
    { name: bounds.node, kind: 'bound', client: bare, to: to(node) },
    { name: bounds.tls, kind: 'bound', client: bare, to: to(proxy) },
    { name: 'tunnel', kind: 'ours', client: ours, to: to(port) },
    { name: 'swap', kind: 'ours', client: ours, to: swapped },
  ]
}

/** With --peers srt, or why it isn't there. */
async function addPeer(): Promise<readonly Arm[]> {
  if (!words.includes('--peers')) return []
  const peer = await srt(dir.path, address)
  if (typeof peer === 'string') return [{ name: srtName, kind: 'peer', values: [], absent: peer }]
  const to = { host: address, port, name: hosts.tunnel, ca, token, isProxied: true }
  ways.push({ name: srtName, kind: 'peer', client: stack.use(peer), to })
  return []
}

/** A process at the other end; the port where it listens. */
async function startEnd(...args: readonly string[]): Promise<number> {
  const child = fork(fileURLToPath(new URL('egress-ends.ts', import.meta.url)), args)
  stack.defer(() => void child.kill())
  const [listening] = (await once(child, 'message')) as [number]
  return listening
}

/** A relay before that port; the port where it listens. */
async function startRelay(before: number): Promise<number> {
  const child = spawn(compile('tcp-relay', dir.path), [String(before)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  stack.defer(() => void child.kill())
  relays.push(child)
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return Number(line.toString())
}

/** A daemon with the same client in a sandbox, which may reach the host under both names. */
async function throughDaemon(): Promise<Client> {
  const allow = Object.values(hosts).map((host) => ({
    host,
    port,
    address,
    private: true,
    reason: 'a benchmark',
  }))
  const credential = { use: 'api', inject: 'egress', as: 'API_TOKEN', hosts: [`${hosts.swap}:${port}`] }
  const bench = fixture('measures', {
    profile: 'open',
    egress: allow.map((it) => ({ ...it, tls: true })),
    credentials: [{ ...credential, ca_file: caFile }],
    timeouts: { call_ms: 120_000 },
  })
  const config = configOf({ bench }, { credentials: { api: { env: 'BENCH_TOKEN' } } })
  const at = await stack.starting(() => place(config))
  await mkdir(join(at.folder, 'profiles'), { mode: 0o700 })
  const profile = {
    version: 1,
    name: 'open',
    extends: 'node',
    widens: true,
    network: { mode: 'allowlist', allow },
    credentials: ['egress'],
  }
  await writeFile(join(at.folder, 'profiles', 'open.yaml'), JSON.stringify(profile), { mode: 0o600 })
  const { process: daemon, client } = await serve(at, { BENCH_TOKEN: token })
  stack.defer(() => client[Symbol.asyncDispose]())
  return {
    pid: daemon.pid ?? 0,
    async ask(tool, args) {
      const { data } = await client.call('tools/call', { server: 'bench', tool, arguments: { ...args } })
      return (data as { structuredContent: { ms: number; bytes: number } }).structuredContent
    },
  }
}

async function memory(): Promise<Figure> {
  const clientOf = (name: string): Client | undefined => ways.find((way) => way.name === name)?.client
  const ours = await atRest(() => besideOf(clientOf('tunnel')?.pid ?? 0, true))
  const theirs = clientOf(srtName)
  const srtsOwn = theirs === undefined ? null : await atRest(() => besideOf(theirs.pid, false))
  const name = `ours, ${ours.length} processes`
  const arms: readonly Arm[] = [
    { name: bounds.two, kind: 'bound', ...pssOf(relays.slice(0, 2).map(({ pid = 0 }) => pid)) },
    { name, kind: 'ours', ...pssOf(ours) },
    ...(srtsOwn === null
      ? []
      : [{ name: `${srtName}, ${srtsOwn.length} processes`, kind: 'peer' as const, ...pssOf(srtsOwn) }]),
    ...absent,
  ]
  return {
    id: 'egress-memory',
    what: 'memory beside a server with a way out: all processes but the daemon, PSS',
    unit: 'MiB',
    arms,
    judged: [{ arm: name, by: 'value', target: 1.5, bounds: [boundBy('value', arms, bounds.two)] }],
  }
}

/** The processes once they are as many as a second before: what a connection was, ends after it; after ten seconds what there is. */
async function atRest(of: () => readonly number[]): Promise<readonly number[]> {
  let before = of()
  for (let second = 0; second < 10; second++) {
    await setTimeout(1000)
    const now = of()
    if (now.length === before.length && now.every((pid) => before.includes(pid))) return now
    before = now
  }
  return before
}
