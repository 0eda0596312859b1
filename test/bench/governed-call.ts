// What a governed call costs, in daemon CPU and in time that it adds, beside what the same bytes cost with less done to
// them. All arms run in turn, several rounds over: what else the machine does meets all of them alike.
// Run: node test/bench/governed-call.ts [calls a round] [rounds]
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync, readFileSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dial } from '../../src/rpc/dial.ts'
import { runtimePaths } from '../../src/rpc/runtime-dir.ts'
import { configOf, daemon, fixture as confined } from '../support/daemon.ts'
import { fixture } from '../support/plain-launch.ts'
import { tempDir } from '../support/temp-dir.ts'
import { Undoing } from '../support/broken-off.ts'
import { counts } from './counts.ts'
import { type Arm, boundBy, type Figure, median, publish } from './figures.ts'
import { flood, introduce, type Line, oneByOne } from './load.ts'
import { parts } from './parts.ts'
import { turnOf } from './turns.ts'

const inFlight = 64
/** How long each is called before: until V8 has compiled what is called often, its other threads take as much as the calls do; ms */
const warmUpMs = 6000
const sdkProxy = 'SDK-built proxy'
/** The longest that one arm makes calls in one round, ms: a disk that takes long to be written to makes fewer */
const roundMs = 10_000
/** More than a journal grows by in a round of an arm, bytes for each call */
const bytesOfCall = 3200
const isCollected = process.send !== undefined
const { calls, rounds } = counts({ calls: 20_000, rounds: 5 })
const shim = fileURLToPath(new URL(`../../dist/libexec/${process.arch}/sallyport-stdio`, import.meta.url))

/** Something that calls go through. */
interface Way extends Line {
  readonly name: string
  /** CPU time so far of what lies between host and server, µs; null where nothing does, or it is not alone in a process */
  readonly cpu: (() => Promise<number>) | null
}

interface Seen {
  readonly cpuMany: number[]
  readonly cpuOne: number[]
  readonly rate: number[]
  readonly latency: number[]
}

await using stack = new Undoing()
const arms = [direct(), ...(await Promise.all(['pipe', 'relay', 'write', 'fsync'].map(alone)))]
arms.push(throughProxy(), ...(await throughDaemon()))
const seen = new Map<Way, Seen>(arms.map((arm) => [arm, { cpuMany: [], cpuOne: [], rate: [], latency: [] }]))
for (const arm of arms) {
  await introduce(arm)
  await flood(arm, 4 * rounds * calls, inFlight, warmUpMs)
}
for (let round = 0; round < rounds; round++)
  for (const [arm, results] of turnOf([...seen], round)) await measure(arm, results)
if (!isCollected) {
  report()
  for (const line of await parts()) say(line)
} else publish([processor()])

async function measure(arm: Way, { cpuMany, cpuOne, rate, latency }: Seen): Promise<void> {
  await backMemory()
  const before = (await arm.cpu?.()) ?? 0
  const many = await flood(arm, calls, inFlight, roundMs)
  rate.push(many.calls / many.seconds)
  const between = (await arm.cpu?.()) ?? 0
  cpuMany.push((between - before) / many.calls)
  if (isCollected) return // whoever collects the figures has those of single calls from the SDK's clients
  const taken = await oneByOne(arm, Math.ceil(calls / 10), roundMs)
  latency.push(median(taken))
  cpuOne.push((((await arm.cpu?.()) ?? 0) - between) / taken.length)
}

function report(): void {
  const [bare] = seen.values()
  say(`medians of ${rounds} rounds, least to most in brackets; ${calls} calls with ${inFlight} in flight,`)
  say(
    `${calls / 10} one at a time, or as many as ${roundMs / 1000} s have room for; "added" is the median against "direct" of the same round\n`,
  )
  say(['', 'CPU µs, 64', 'CPU µs, 1', 'calls/s, 64', 'µs, 1', 'added µs, 1'].map(cell).join(''))
  for (const [{ name, cpu }, { cpuMany, cpuOne, rate, latency }] of seen) {
    const added = latency.map((us, round) => us - (bare?.latency[round] ?? 0))
    const row = [cpu === null ? '' : spread(cpuMany, 1), cpu === null ? '' : spread(cpuOne, 0)]
    say([name, ...row, spread(rate, 0), spread(latency, 0), spread(added, 0)].map(cell).join(''))
  }
}

/** What the daemon spends on a call, for who collects the figures. */
function processor(): Figure {
  const kinds: Readonly<Record<string, Arm['kind']>> = { pipe: 'bound', relay: 'bound', [sdkProxy]: 'peer' }
  const between = [...seen]
    .filter(([{ cpu }]) => cpu !== null)
    .map(([{ name }, { cpuMany }]): Arm => ({ name, kind: kinds[name] ?? 'ours', values: cpuMany }))
  return {
    id: 'processor',
    what: `processor time of a call between host and server, ${inFlight} in flight`,
    unit: 'µs',
    arms: between,
    judged: [
      {
        arm: 'write',
        by: 'value',
        target: 12,
        bounds: ['relay', 'pipe'].map((name) => boundBy('value', between, name)),
      },
    ],
    note: `pipe: bytes passed on; relay: each line parsed as JSON; write, fsync: governed, by durability of the journal. The proxy governs and records nothing.`,
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function cell(text: string, column: number): string {
  return column === 0 ? text.padEnd(16) : text.padStart(22)
}

function spread(values: readonly number[], digits: number): string {
  const sorted = values.toSorted((a, b) => a - b)
  const [least = 0, most = 0] = [sorted[0], sorted.at(-1)]
  const middle = sorted[sorted.length >> 1] ?? 0
  return `${middle.toFixed(digits)} (${least.toFixed(digits)}-${most.toFixed(digits)})`
}

/**
 * On a virtual machine a page that no one has touched costs its first user 10 µs, and the journal is the first user of most
 * of its pages. So as many as the round can use are touched right before it, and handed back to the kernel, which hands out
 * first what it was given last. Where there is room for no more, it is a half of what is free.
 */
async function backMemory(): Promise<void> {
  await using dir = await tempDir()
  const path = join(dir.path, 'pages')
  const { bavail, bsize } = statfsSync(dir.path)
  const bytes = Math.min(1.1 * calls * bytesOfCall, (bavail * bsize) / 2, freemem() / 2)
  const fd = openSync(path, 'w')
  try {
    const chunk = Buffer.alloc(1 << 20)
    for (let written = 0; written < bytes; written += chunk.length) writeSync(fd, chunk)
  } finally {
    closeSync(fd)
    unlinkSync(path)
  }
}

/** The server itself. */
function direct(): Way {
  const child = spawn(process.execPath, [fixture('raw-echo.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] })
  stack.defer(() => void child.kill())
  return { name: 'direct', write: child.stdin, read: child.stdout, cpu: null }
}

/** What is to be measured in a process of its own, reached over a socket. */
async function alone(kind: string): Promise<Way> {
  const dir = await stack.starting(() => tempDir())
  const path = join(dir.path, 's')
  const script = fileURLToPath(new URL('governed-process.ts', import.meta.url))
  const child = fork(script, [path, kind], { env: { ...process.env, TMPDIR: dir.path } })
  stack.defer(() => ended(child, () => child.disconnect()))
  await once(child, 'message')
  const host = connect(path)
  stack.defer(() => void host.destroy())
  const cpu = async (): Promise<number> => {
    child.send('cpu')
    const [us] = (await once(child, 'message')) as [number]
    return us
  }
  return { name: kind, write: host, read: host, cpu }
}

/** What the SDK makes it easy to write, before a server that the SDK can speak to. */
function throughProxy(): Way {
  const proxy = fileURLToPath(new URL('sdk-proxy.ts', import.meta.url))
  const child = spawn(process.execPath, [proxy, process.execPath, fixture('echo.mjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  stack.defer(() => ended(child, () => child.stdin.end()))
  const cpu = (): Promise<number> => Promise.resolve(processorTime(child.pid ?? 0))
  return { name: sdkProxy, write: child.stdin, read: child.stdout, cpu }
}

/** Of all its threads so far, µs. */
function processorTime(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const taken = (thread: string): number =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
  return threads.reduce((sum, thread) => sum + taken(thread) / 1000, 0)
}

/** The daemon as it is installed, with its server in a sandbox, over its socket and through the shim. */
async function throughDaemon(): Promise<readonly Way[]> {
  const running = await stack.starting(() => daemon(configOf({ echo: confined('raw-echo') })))
  const caller = await dial(runtimePaths(running.runtimeDir).hostSocket)
  await caller.call('session/attach', { server: 'echo' })
  const { socket } = caller.handOver()
  stack.defer(() => void socket.destroy())
  const child = spawn(shim, ['echo', '--no-autostart'], {
    env: running.env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  stack.defer(() => ended(child, () => child.stdin.end()))
  return [
    { name: 'daemon, socket', write: socket, read: socket, cpu: null },
    { name: 'daemon, shim', write: child.stdin, read: child.stdout, cpu: null },
  ]
}

async function ended(child: ChildProcess, end: () => void): Promise<void> {
  const exit = once(child, 'exit')
  end()
  await exit
}
