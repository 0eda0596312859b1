// What others keep in memory: beside each server, and in the process that stands for our daemon.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Undoing } from '../support/broken-off.ts'
import { fixture as pathOf } from '../support/plain-launch.ts'
import { reasonOf } from '../support/reason.ts'
import { besideOf, pssOf } from './clients.ts'
import { type Command, type Containers, containers } from './containers.ts'
import type { Arm } from './figures.ts'
import { type Gateway, gateways, initialized, startGateway } from './gateways.ts'
import { install, nameOf } from './peers.ts'
import { answered, ended, hello, orEnded, srtCommand } from './starts.ts'

const server = 'echo.mjs'
const script = pathOf(server)
const proxy = fileURLToPath(new URL('sdk-proxy.ts', import.meta.url))
/** What one that has just answered is given to come to rest, ms */
const restMs = 1000
const mebi = 1024

/** Arms for the memory beside a server, and for that of a daemon. */
export interface PeersMemory {
  readonly beside: readonly Arm[]
  readonly daemons: readonly Arm[]
}

/** One that runs with its server: the processes around that, and, where one of them serves it to others, which. */
interface Running extends AsyncDisposable {
  readonly around: () => Promise<readonly number[]>
  readonly daemon?: number
}

/** Measures each with so many servers at once, of which the kernel shares among them what is alike. */
export async function peersMemory(stack: Undoing, folder: string, servers: number): Promise<PeersMemory> {
  const docker = await stack.starting(containers)
  const srt = await srtCommand(folder)
  const engine = 'absent' in docker ? { values: [], absent: docker.absent } : rssOf(docker.own())
  const all = [
    await several(stack, 'SDK-built proxy', servers, (brokenOff) =>
      overStdio([process.execPath, proxy, process.execPath, script], folder, brokenOff),
    ),
    await several(
      stack,
      nameOf('srt'),
      servers,
      'absent' in srt ? srt : (brokenOff) => overStdio(srt(script), folder, brokenOff),
    ),
    await several(
      stack,
      'docker run',
      servers,
      'absent' in docker ? docker : (brokenOff) => contained(docker, folder, brokenOff),
    ),
  ]
  for (const peer of gateways) {
    const program = await install(peer, folder)
    const start =
      typeof program === 'string' ? (brokenOff: AbortSignal) => gateway(peer, program, brokenOff) : program
    all.push(await several(stack, nameOf(peer), servers, start))
  }
  const engineArm: Arm = { name: 'dockerd, no container', kind: 'peer', ...engine }
  return {
    beside: all.map(({ beside }) => beside),
    daemons: [...all.flatMap(({ daemon }) => daemon), engineArm],
  }
}

async function several(
  undoing: Undoing,
  name: string,
  servers: number,
  start: ((brokenOff: AbortSignal) => Promise<Running>) | { readonly absent: string },
): Promise<{ readonly beside: Arm; readonly daemon: readonly Arm[] }> {
  const arm = (values: Pick<Arm, 'values' | 'absent'>): Arm => ({ name, kind: 'peer', ...values })
  if ('absent' in start) return { beside: arm({ values: [], absent: start.absent }), daemon: [] }
  await using stack = new AsyncDisposableStack()
  try {
    const running: Running[] = []
    for (let n = 0; n < servers; n++) running.push(stack.use(await undoing.starting(start)))
    await setTimeout(restMs)
    const around = new Set((await Promise.all(running.map((it) => it.around()))).flat())
    const pss = pssOf([...around])
    const daemons = running.flatMap(({ daemon }) => daemon ?? [])
    const each: Arm = {
      name: `${name}, for one server`,
      kind: 'peer',
      values: daemons.map((pid) => residentMib(pid)),
    }
    return {
      beside: arm({ ...pss, values: pss.values.map((mib) => mib / servers) }),
      daemon: daemons.length > 0 ? [each] : [],
    }
  } catch (error) {
    return { beside: arm({ values: [], absent: `it does not run: ${reasonOf(error)}` }), daemon: [] }
  }
}

/** Starts one over its stdin and stdout; resolves when it has answered. Broken off, it is killed and fails at once. */
export async function overStdio(
  [program, ...args]: Command,
  cwd: string,
  brokenOff: AbortSignal,
): Promise<Running> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], cwd })
  await once(child, 'spawn')
  await orEnded(answered(child.stdin, child.stdout), brokenOff, (graceMs) => ended(child, graceMs))
  return {
    around: () => Promise.resolve(besideOf(child.pid ?? 0, false, server)),
    [Symbol.asyncDispose]: () => ended(child),
  }
}

/** Its client stays for as long as the container, and so does the engine's shim. */
async function contained(docker: Containers, cwd: string, brokenOff: AbortSignal): Promise<Running> {
  const client = await overStdio(docker.run(server), cwd, brokenOff)
  return { ...client, around: async () => [...(await client.around()), ...(await docker.beside())] }
}

/** Starts one, which is installed at that path, before our server; resolves when it has answered. Broken off, as above. */
export async function gateway(peer: Gateway, program: string, brokenOff: AbortSignal): Promise<Running> {
  const serving = await startGateway(peer, program, script)
  const pid = serving.child.pid ?? 0
  await orEnded(initialized(serving, hello), brokenOff, async () => serving[Symbol.asyncDispose]())
  return {
    around: () => Promise.resolve(besideOf(pid, false, server)),
    daemon: pid,
    [Symbol.asyncDispose]: () => serving[Symbol.asyncDispose](),
  }
}

function rssOf(pids: readonly number[]): Pick<Arm, 'values' | 'absent'> {
  if (pids.length === 0) return { values: [], absent: 'the engine is not of this run' }
  return { values: [pids.reduce((sum, pid) => sum + residentMib(pid), 0)] }
}

/** What of a process is resident, MiB. */
export function residentMib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / mebi
}
