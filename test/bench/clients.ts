// Who measures: the fixture `measures` as it is, and as srt runs it; and what stands beside it in memory.
import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Arm } from './figures.ts'
import { isAlive } from '../support/leaks.ts'
import { install } from './peers.ts'
import { endNow } from './starts.ts'
import { within } from './until.ts'

const fixture = fileURLToPath(new URL('../fixtures/servers/measures.mjs', import.meta.url))

export interface Client {
  readonly pid: number
  ask(tool: string, args: object): Promise<{ readonly ms: number; readonly bytes: number }>
}

type Running = Client & AsyncDisposable

/**
 * The server with nothing around it but a file of names of its own, so that it looks names up as one in a sandbox does. It
 * is the cheapest look-up that there is: one that asks a resolver takes longer.
 */
export async function direct(folder: string, names: readonly string[], address: string): Promise<Running> {
  const hosts = join(folder, 'hosts')
  await writeFile(hosts, names.map((name) => `${address} ${name}\n`).join(''))
  const own = ['--die-with-parent', '--dev-bind', '/', '/', '--ro-bind', hosts, realpathSync('/etc/hosts')]
  return speaking(spawn('bwrap', [...own, process.execPath, fixture], piped))
}

/**
 * The same in srt, which is installed into the folder; or why it can't be. It may reach the address through its proxy, for
 * clients that ask for that.
 */
export async function srt(folder: string, address: string): Promise<Running | string> {
  const program = await install('srt', folder)
  if (typeof program !== 'string') return program.absent
  const settings = join(folder, 'srt-client.json')
  await writeFile(
    settings,
    JSON.stringify({
      network: { allowedDomains: [address, 'localhost'], deniedDomains: [], allowLocalBinding: true },
      filesystem: { denyRead: [], allowWrite: [], denyWrite: [] },
    }),
  )
  const line = `${process.execPath} ${fixture}`
  const child = spawn(program, ['--settings', settings, '-c', line], {
    ...piped,
    cwd: folder,
    detached: true,
  })
  try {
    return await speaking(child)
  } catch (error) {
    return `it does not run: ${(error as Error).message}`
  }
}

const piped: SpawnOptions = { stdio: ['pipe', 'pipe', 'inherit'] }

/** The longest that an answer may take, ms */
const answerMs = 60_000

/** Speaks with a server over its stdin and stdout, one request at a time. */
async function speaking(child: ChildProcess): Promise<Running> {
  await once(child, 'spawn')
  child.stdin?.on('error', () => undefined) // its end is seen where it is read
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  let id = 0
  const say = async (
    method: string,
    params: object,
  ): Promise<{ result?: unknown; error?: { message: string } }> => {
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params })}\n`)
    const { value, done } = await within(answerMs, `its answer to ${method}`, lines.next())
    if (done === true) throw new Error('it ended')
    return JSON.parse(value) as { result?: unknown; error?: { message: string } }
  }
  const running: Running = {
    pid: child.pid ?? 0,
    async ask(name, args) {
      const { result, error } = await say('tools/call', { name, arguments: args })
      if (error !== undefined) throw new Error(error.message)
      return (result as { structuredContent: { ms: number; bytes: number } }).structuredContent
    },
    async [Symbol.asyncDispose]() {
      child.stdin?.end()
      const tree = treeOf(child.pid ?? 0)
      if (child.exitCode === null && child.signalCode === null)
        await new Promise((resolve) => {
          child.once('exit', resolve)
          child.kill('SIGTERM')
          setTimeout(() => child.kill('SIGKILL'), 3000).unref()
        })
      // srt leaves its relays where it is killed
      for (const pid of tree) if (existsSync(`/proc/${pid}`)) endNow(pid)
    },
  }
  const clientInfo = { name: 'b', version: '1' }
  try {
    await say('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
  } catch (error) {
    await running[Symbol.asyncDispose]()
    throw error
  }
  return running
}

/** The processes below one, itself too unless `isApart`, but for the server, which Node runs from that file. */
export function besideOf(pid: number, isApart: boolean, server = 'measures.mjs'): readonly number[] {
  return treeOf(pid).filter((it) => !(isApart && it === pid) && isBeside(it, server))
}

/** What their PSS comes to, MiB, as values of an arm, or why it can't be read. One that has just ended has none. */
export function pssOf(pids: readonly number[]): Pick<Arm, 'values' | 'absent'> {
  try {
    return { values: [pids.reduce((sum, pid) => sum + pssKib(pid), 0) / 1024] }
  } catch (error) {
    return { values: [], absent: `its memory is not readable: ${(error as Error).message}` }
  }
}

function pssKib(pid: number): number {
  const path = `/proc/${pid}/smaps_rollup`
  try {
    const kib = /^Pss:\s+(\d+)/m.exec(readFileSync(path, 'utf8'))?.[1]
    if (kib === undefined) throw new Error(`${path} says no Pss`)
    return Number(kib)
  } catch (error) {
    // One that is at its end has no memory any more. A kernel that has no such file says ENOENT of one that lives, too.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH' || !isAlive(pid)) return 0
    throw error
  }
}

/** Neither the server nor a process that has just ended. */
function isBeside(pid: number, server: string): boolean {
  try {
    const [program = '', script = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return program !== '' && !(program.endsWith('node') && script.endsWith(server))
  } catch {
    return false
  }
}

function treeOf(root: number): readonly number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc').filter((it) => /^\d+$/.test(it))) {
    try {
      parents.set(Number(name), Number(/\) . (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1]))
    } catch {
      // it has just ended
    }
  }
  const isBelow = (pid: number): boolean =>
    pid === root || (parents.has(pid) && isBelow(parents.get(pid) ?? 0))
  return [...parents.keys()].filter(isBelow)
}
