// What stands in memory, and what the shim adds to the start of a host's server: PSS beside each server, the daemon at rest and
// with idle servers, the shim's own PSS and first byte. Run after npm run build: node test/bench/footprint.ts [servers] [rounds]
// [starts of a daemon]
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runtimePaths } from '../../src/rpc/runtime-dir.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { descendantsOf } from '../support/leaks.ts'
import { tempDir } from '../support/temp-dir.ts'
import { Undoing } from '../support/broken-off.ts'
import { bareSandbox, built } from './bubblewrap.ts'
import { pssOf } from './clients.ts'
import { compile } from './compile.ts'
import { counts } from './counts.ts'
import { type Arm, boundBy, type Figure, publish } from './figures.ts'
import { peersMemory, residentMib } from './footprint-peers.ts'
import { byTurns, turnOf } from './turns.ts'

const { servers, rounds, starts } = counts({ servers: 100, rounds: 30, starts: 3 })
const shim = fileURLToPath(new URL(`../../dist/libexec/${process.arch}/sallyport-stdio`, import.meta.url))
/** Starts in one run of the launcher, before it is the other's turn */
const launchesAtOnce = 5
/** Servers of each peer: some keep 50 MiB beside one */
const peersAtOnce = 5
/** What a daemon that has just answered is given to come to rest, ms */
const restMs = 3000
const nodeAlone = 'Node alone'
const nodeShimName = 'a shim in Node'
const leastStart = '/bin/true, to its end'
const root = fileURLToPath(new URL('../..', import.meta.url))
/** What a daemon needs of npm before it answers */
const packages = ['commander', 'nanoid', 'pino']

await using stack = new Undoing()
publish([...(await idle()), ...(await firstByte())])

/** The daemon alone, then with so many servers that do nothing. */
async function idle(): Promise<readonly Figure[]> {
  const names = Array.from({ length: servers }, (_, n) => `echo${n}`)
  const config = configOf(Object.fromEntries(names.map((name) => [name, fixture('echo')])))
  const resting = await byTurns(
    [
      { name: nodeAlone, kind: 'bound', once: () => residentNode([]) },
      { name: 'Node and our packages', kind: 'bound', once: () => residentNode(packages) },
      { name: 'at rest', kind: 'ours', once: () => residentDaemon(config) },
    ],
    starts,
  )
  const alone = await besideAlone()
  const running = await stack.starting(() => daemon(config))
  const pid = running.process.pid ?? 0
  for (const server of names) await running.client.call('servers/start', { server })
  const ours = descendantsOf(pid).filter((child) => !isServer(child.pid))
  const beside = pssOf(ours.map((child) => child.pid))
  const besides: readonly [Arm, Arm] = [
    alone,
    { name: 'sallyport', kind: 'ours', ...beside, values: beside.values.map((mib) => mib / servers) },
  ]
  const full = residentMib(pid)
  const attached = spawn(shim, ['echo0', '--no-autostart'], {
    env: running.env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  attached.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
  await once(attached.stdout, 'data')
  const shims: readonly [Arm, Arm, Arm] = [
    await pipeAlone(),
    { name: 'sallyport-stdio', kind: 'ours', ...pssOf([attached.pid ?? 0]) },
    await nodeShim(running.runtimeDir),
  ]
  attached.stdin.end()
  await once(attached, 'exit')
  const folder = await stack.starting(() => tempDir())
  const peers = await peersMemory(stack, folder.path, Math.min(servers, peersAtOnce))
  const bound = boundBy('value', resting, nodeAlone)
  return [
    {
      id: 'beside',
      what: `memory beside each of ${servers} servers: all processes of ours but the daemon, PSS`,
      unit: 'MiB',
      arms: [...besides, ...peers.beside],
      judged: [
        { arm: 'sallyport', by: 'value', target: 1.5, bounds: [boundBy('value', besides, besides[0].name)] },
      ],
      note: `${(ours.length / servers).toFixed(2)} processes for each server. The others have ${Math.min(servers, peersAtOnce)} servers each, and a proxy or gateway of its own for each of them; dockerd is apart, as our daemon is.`,
    },
    {
      id: 'daemon',
      what: 'the daemon, RSS',
      unit: 'MiB',
      arms: [
        ...resting,
        { name: `with ${servers} idle servers`, kind: 'ours', values: [full] },
        ...peers.daemons,
      ],
      judged: [
        { arm: 'at rest', by: 'value', target: 80, bounds: [bound] },
        { arm: `with ${servers} idle servers`, by: 'value', target: 110, bounds: [bound] },
      ],
      note: `At rest: ${servers} servers configured, ${restMs / 1000} s after it answered.`,
    },
    {
      id: 'shim-memory',
      what: 'the shim, PSS',
      unit: 'MiB',
      arms: shims,
      judged: [
        { arm: 'sallyport-stdio', by: 'value', target: 1, bounds: [boundBy('value', shims, shims[0].name)] },
      ],
    },
  ]
}

/** As many sandboxes with a program that sleeps: what bubblewrap keeps beside each of them, MiB. */
async function besideAlone(): Promise<Arm> {
  const args = [...bareSandbox, 'sleep', 'infinity']
  const sandboxes = Array.from({ length: servers }, () => spawn('bwrap', args, { stdio: 'ignore' }))
  stack.defer(() => sandboxes.forEach((it) => void it.kill('SIGKILL')))
  for (const { pid = 0 } of sandboxes) await built(pid)
  const pids = sandboxes.flatMap(({ pid = 0 }) => [
    pid,
    ...descendantsOf(pid).flatMap((it) => (it.name === 'bwrap' ? it.pid : [])),
  ])
  const pss = pssOf(pids)
  const exits = Promise.all(sandboxes.map((it) => once(it, 'exit')))
  for (const it of sandboxes) it.kill('SIGKILL')
  await exits
  return { name: 'bubblewrap alone', kind: 'bound', ...pss, values: pss.values.map((mib) => mib / servers) }
}

/** What the least that passes bytes on keeps, MiB. */
async function pipeAlone(): Promise<Arm> {
  const folder = await stack.starting(() => tempDir())
  const child = spawn(compile('byte-pipe', folder.path), ['cat'], { stdio: ['pipe', 'pipe', 'ignore'] })
  child.stdin.write('x')
  await once(child.stdout, 'data')
  const pss = pssOf([child.pid ?? 0])
  child.stdin.end()
  await once(child, 'exit')
  return { name: 'byte pipe in C', kind: 'bound', ...pss }
}

/** The least that Node can be between a host and the daemon's socket, MiB. */
async function nodeShim(runtimeDir: string): Promise<Arm> {
  const script = `${connecting(runtimePaths(runtimeDir).hostSocket)}.once('connect', () => process.stdout.write('up'))`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  const exit = once(child, 'exit')
  await once(child.stdout, 'data')
  const pss = pssOf([child.pid ?? 0])
  child.kill('SIGKILL')
  await exit
  return { name: nodeShimName, kind: 'peer', ...pss }
}

/** Node with these packages loaded and nothing to do, MiB. */
async function residentNode(loaded: readonly string[]): Promise<number> {
  const loading = loaded.map((name) => `await import(${JSON.stringify(name)});`).join('')
  const script = `${loading} setInterval(() => undefined, 1e6); process.stdout.write('up')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: root })
  const exit = once(child, 'exit')
  await once(child.stdout, 'data')
  const mib = residentMib(child.pid ?? 0)
  child.kill('SIGKILL')
  await exit
  return mib
}

/** A daemon that has nothing to do, MiB. */
async function residentDaemon(config: object): Promise<number> {
  await using running = await stack.starting(() => daemon(config))
  await setTimeout(restMs)
  return residentMib(running.process.pid ?? 0)
}

/** From the start of the shim to its first byte at a socket that somebody else listens on. */
async function firstByte(): Promise<readonly Figure[]> {
  const folder = await stack.starting(() => tempDir())
  const path = join(folder.path, 'host.sock')
  let came: (socket: Socket) => void = () => undefined
  const server = createServer((socket) => socket.once('data', () => came(socket))).listen(path)
  await once(server, 'listening')
  stack.defer(() => void server.close())
  const first = async (command: string, args: readonly string[]): Promise<number> => {
    const arrived = new Promise<Socket>((resolve) => (came = resolve))
    const began = performance.now()
    const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'ignore'] })
    const exit = once(child, 'exit')
    const socket = await arrived
    const taken = performance.now() - began
    child.kill('SIGKILL')
    await exit
    socket.destroy()
    return taken
  }
  const arms = await byTurns(
    [
      { name: nodeShimName, kind: 'peer', once: () => first(process.execPath, ['-e', writing(path)]) },
      {
        name: 'sallyport-stdio',
        kind: 'ours',
        once: () => first(shim, ['echo', '--no-autostart', '--socket', path]),
      },
    ],
    rounds,
  )
  const byProgram = await byLauncher(folder.path)
  const bound = await byTurns([{ name: leastStart, kind: 'bound', once: ending }], rounds)
  return [
    {
      id: 'shim-start',
      what: 'from the start of the shim to its first byte at the socket',
      unit: 'ms',
      arms: byProgram,
      judged: [
        { arm: 'sallyport-stdio', by: 'value', target: 2, bounds: [boundBy('value', byProgram, leastStart)] },
      ],
      note: 'Started by posix_spawn from a small program in C: what the shim itself takes, and the kernel to start it.',
    },
    {
      id: 'shim-spawn',
      what: 'the same as Node’s spawn sees it, whoever is started',
      unit: 'ms',
      arms: [...bound, ...arms],
      judged: [],
    },
  ]
}

/** Both arms by turns, in a few runs of the launcher. */
async function byLauncher(folder: string): Promise<readonly Arm[]> {
  const launcher = compile('first-byte', folder)
  const times = (socket: string, command: readonly string[]): readonly number[] =>
    execFileSync(launcher, [`${launchesAtOnce}`, socket, ...command], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map(Number)
  const arms = [
    { name: leastStart, kind: 'bound', values: [] as number[], of: () => times('-', ['/bin/true']) },
    {
      name: 'sallyport-stdio',
      kind: 'ours',
      values: [] as number[],
      of: (socket: string) => times(socket, [shim, 'echo', '--no-autostart', '--socket', socket]),
    },
    {
      name: nodeShimName,
      kind: 'peer',
      values: [] as number[],
      of: (socket: string) => times(socket, [process.execPath, '-e', writing(socket)]),
    },
  ] as const
  for (let round = 0; round < rounds; round++)
    for (const { values, of, kind } of turnOf(arms, round))
      values.push(...of(join(folder, `${kind}${round}.sock`)))
  return arms.map(({ name, kind, values }) => ({ name, kind, values }))
}

async function ending(): Promise<number> {
  const began = performance.now()
  await once(spawn('/bin/true', { stdio: 'ignore' }), 'exit')
  return performance.now() - began
}

function isServer(pid: number): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('echo.mjs')
}

function writing(path: string): string {
  return `${connecting(path)}.write('hello')`
}

function connecting(path: string): string {
  return `require('node:net').connect(${JSON.stringify(path)})`
}
