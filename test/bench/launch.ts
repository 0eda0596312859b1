// From asking for a server to its answer to `initialize`: bare, in bubblewrap alone, through Sallyport, and in srt. The server is the
// quickest that Node can run. Run after npm run build: node test/bench/launch.ts [rounds]
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { dial } from '../../src/rpc/dial.ts'
import { runtimePaths } from '../../src/rpc/runtime-dir.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { descendantsOf } from '../support/leaks.ts'
import { fixture as pathOf } from '../support/plain-launch.ts'
import { tempDir } from '../support/temp-dir.ts'
import { Undoing } from '../support/broken-off.ts'
import { bareSandbox, built } from './bubblewrap.ts'
import { counts } from './counts.ts'
import { type Arm, boundBy, publish } from './figures.ts'
import { install, peers } from './peers.ts'
import { byTurns, type Measured } from './turns.ts'
import { heard, until } from './until.ts'

const { rounds } = counts({ rounds: 25 })
const shim = fileURLToPath(new URL(`../../dist/libexec/${process.arch}/sallyport-stdio`, import.meta.url))
const script = pathOf('raw-echo.mjs')
const echo = pathOf('echo.mjs')
const hello = `${JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
})}\n`
const waiting = 'bubblewrap that waits'
const call = `${JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo', arguments: {} } })}\n`

await using stack = new Undoing()
const folder = await stack.starting(() => tempDir())
const running = await stack.starting(() => daemon(configOf({ echo: fixture('raw-echo') })))
const measured: Measured[] = [
  { name: 'bare', kind: 'base', once: () => started(process.execPath, [script]) },
  {
    name: 'bubblewrap alone',
    kind: 'bound',
    once: () => started('bwrap', [...bareSandbox, process.execPath, script]),
  },
  { name: 'host.sock', kind: 'ours', once: attached },
  {
    name: 'sallyport-stdio',
    kind: 'ours',
    once: () => started(shim, ['echo', '--no-autostart'], running.env),
  },
]
const absent: Arm[] = []
const srt = await install('srt', folder.path)
const srtName = `srt ${peers.srt.version}`
if (typeof srt === 'string') {
  const settings = join(folder.path, 'settings.json')
  const none = { allowedDomains: [], deniedDomains: [] }
  await writeFile(
    settings,
    JSON.stringify({ network: none, filesystem: { denyRead: [], allowWrite: [], denyWrite: [] } }),
  )
  await mkdir(join(folder.path, 'cwd'))
  const args = ['--settings', settings, '-c', `${process.execPath} ${script}`]
  measured.push({
    name: srtName,
    kind: 'peer',
    once: () => started(srt, args, { PATH: process.env['PATH'] ?? '' }),
  })
} else absent.push({ name: srtName, kind: 'peer', values: [], absent: srt.absent })
const pooled = await stack.starting(() =>
  daemon(
    configOf({
      pooled: fixture('echo', { instance: 'call', pool: { size: 1 } }),
      cold: fixture('echo', { instance: 'call', pool: { size: 0 } }),
    }),
  ),
)
const calls: Measured[] = [
  { name: 'bare', kind: 'base', once: calledBare },
  { name: waiting, kind: 'bound', once: calledWaiting },
  { name: 'from the pool', kind: 'ours', once: () => called('pooled') },
  { name: 'built for the call', kind: 'ours', once: () => called('cold') },
]
const pool = await byTurns(calls, rounds)
const launches = await byTurns(measured, rounds)
publish([
  {
    id: 'pool',
    what: 'a call in a process of its own, from the start of that process to the answer',
    unit: 'ms',
    arms: pool,
    judged: [{ arm: 'from the pool', by: 'added', target: 3, bounds: [boundBy('added', pool, waiting)] }],
    note: 'Bare: the program is started, asked to initialize, and called. Bubblewrap that waits: the same in a sandbox that is there, from the word to go. Ours: tools/call on the socket with “instance: call”, governed and recorded.',
  },
  {
    id: 'launch',
    what: 'from the start of a server to its answer to initialize',
    unit: 'ms',
    arms: [...launches, ...absent],
    judged: [
      {
        arm: 'host.sock',
        by: 'added',
        target: 15,
        bounds: [boundBy('added', launches, 'bubblewrap alone')],
      },
    ],
    note: 'The daemon is up; each launch is a new sandbox. sallyport-stdio is the same with the start of the shim.',
  },
])

/** Starts a program, says hello, and ends it when it has answered; ms from one to the other. */
async function started(
  command: string,
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
): Promise<number> {
  const began = performance.now()
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'ignore'],
    cwd: folder.path,
    ...(env !== undefined && { env }),
  })
  try {
    await once(child, 'spawn')
    await answered(child.stdin, child.stdout)
    return performance.now() - began
  } finally {
    await ended(child)
  }
}

/** A session over the socket: attach, hello, answer. Its server ends with it. */
async function attached(): Promise<number> {
  const began = performance.now()
  const caller = await dial(runtimePaths(running.runtimeDir).hostSocket)
  await caller.call('session/attach', { server: 'echo' })
  const { socket } = caller.handOver()
  await answered(socket, socket)
  const taken = performance.now() - began
  socket.destroy()
  await gone()
  return taken
}

async function calledBare(): Promise<number> {
  const began = performance.now()
  const child = spawn(process.execPath, [echo], { stdio: ['pipe', 'pipe', 'ignore'], cwd: folder.path })
  await calledOnce(child.stdin, child.stdout)
  const taken = performance.now() - began
  await ended(child)
  return taken
}

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

async function calledOnce(write: Writable, read: Readable): Promise<void> {
  await answered(write, read)
  write.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
  await answered(write, read, call)
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

async function answered(write: Writable, read: Readable, request = hello): Promise<void> {
  const lines = createInterface({ input: read })
  const line = heard(lines, 'line')
  write.once('error', () => undefined) // whoever ends before it reads, ends its output too
  write.write(request)
  await line
  lines.close()
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return
  const below = descendantsOf(child.pid)
  if (child.exitCode === null && child.signalCode === null) {
    const exit = once(child, 'exit')
    child.stdin?.end()
    const timer = setTimeout(() => child.kill('SIGKILL'), 3000)
    await exit
    clearTimeout(timer)
  }
  // srt leaves its relays where its command has ended
  for (const { pid } of below)
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it has just ended
    }
  await gone()
}

/** Nothing that the last one left works on while the next is measured. */
async function gone(): Promise<void> {
  const below = (): readonly { readonly name: string }[] => descendantsOf(running.process.pid ?? 0)
  await until('the last launch is gone', () =>
    below().every(({ name }) => name !== 'node' && name !== 'bwrap'),
  )
}
