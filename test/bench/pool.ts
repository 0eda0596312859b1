// A call in a process of its own: bare, in a sandbox of bubblewrap that waits, from the pool and built for the call, and as others
// start one for it. Run after npm run build: node test/bench/pool.ts [rounds]
import { spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { Undoing } from '../support/broken-off.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { fixture as pathOf } from '../support/plain-launch.ts'
import { tempDir } from '../support/temp-dir.ts'
import { bareSandbox, built } from './bubblewrap.ts'
import { containers } from './containers.ts'
import { counts } from './counts.ts'
import { type Arm, boundBy, publish } from './figures.ts'
import { nameOf } from './peers.ts'
import { calledOnce, ended, srtCommand, timed } from './starts.ts'
import { byTurns, type Measured } from './turns.ts'
import { until } from './until.ts'

const { rounds } = counts({ rounds: 25 })
const echo = pathOf('echo.mjs')
const waiting = 'bubblewrap that waits'

await using stack = new Undoing()
const folder = await stack.starting(() => tempDir())
const pooled = await stack.starting(() =>
  daemon(
    configOf({
      pooled: fixture('echo', { instance: 'call', pool: { size: 1 } }),
      cold: fixture('echo', { instance: 'call', pool: { size: 0 } }),
    }),
  ),
)
const measured: Measured[] = [
  { name: 'bare', kind: 'base', once: () => timed([process.execPath, echo], folder.path, calledOnce) },
  { name: waiting, kind: 'bound', once: calledWaiting },
  { name: 'from the pool', kind: 'ours', once: () => called('pooled') },
  { name: 'built for the call', kind: 'ours', once: () => called('cold') },
]
const absent: Arm[] = []
const srt = await srtCommand(folder.path)
if ('absent' in srt) absent.push({ name: nameOf('srt'), kind: 'peer', values: [], ...srt })
else
  measured.push({ name: nameOf('srt'), kind: 'peer', once: () => timed(srt(echo), folder.path, calledOnce) })
const docker = await stack.starting(containers)
if ('absent' in docker) absent.push({ name: 'docker run', kind: 'peer', values: [], absent: docker.absent })
else {
  const command = docker.run('echo.mjs')
  measured.push({ name: 'docker run', kind: 'peer', once: () => timed(command, folder.path, calledOnce) })
}
const arms = await byTurns(measured, rounds)
publish([
  {
    id: 'pool',
    what: 'a call in a process of its own, from the start of that process to the answer',
    unit: 'ms',
    arms: [...arms, ...absent],
    judged: [{ arm: 'from the pool', by: 'added', target: 3, bounds: [boundBy('added', arms, waiting)] }],
    note: 'Bare: the program is started, asked to initialize, and called. Bubblewrap that waits: the same in a sandbox that is there, from the word to go. Ours: tools/call on the socket with “instance: call”, governed and recorded. None of the others keeps one that waits.',
  },
])

/** The program in a sandbox that was built before and waits, from the word to go. */
async function calledWaiting(): Promise<number> {
  const args = [...bareSandbox, '--block-fd', '3', process.execPath, echo]
  const child = spawn('bwrap', args, { stdio: ['pipe', 'pipe', 'ignore', 'pipe'], cwd: folder.path })
  await built(child.pid ?? 0)
  const began = performance.now()
  ;(child.stdio[3] as Writable).end('!') // it reads one byte
  await calledOnce(child.stdin as Writable, child.stdout as Readable)
  const taken = performance.now() - began
  await ended(child)
  return taken
}

/** A call whose sandbox waits, where any does; the next one waits before this is over. */
async function called(server: string): Promise<number> {
  await pooled.client.call('servers/start', { server })
  await full(server)
  const began = performance.now()
  await pooled.client.call('tools/call', { server, tool: 'echo', arguments: {} })
  const taken = performance.now() - began
  await full(server)
  return taken
}

/** Waits until as many sandboxes wait as may, and nothing that the last call left works on. */
async function full(server: string): Promise<void> {
  await until(`the pool of ${server} is full`, async () => {
    const { pool, instances } = await pooled.client.call('servers/get', { server })
    return pool?.waiting === pool?.size && instances.every(({ purpose }) => purpose === 'control')
  })
}
