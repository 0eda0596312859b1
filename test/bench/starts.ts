// Starting a server that speaks over stdin and stdout, whatever is around it, up to its answer; and its end.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { descendantsOf } from '../support/leaks.ts'
import type { Command } from './containers.ts'
import { install } from './peers.ts'
import { heard } from './until.ts'

export const hello = `${JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
})}\n`

/** What is usually given to one that is to end, and where nobody has the time, ms */
const usualMs = 3000
const brokenOffMs = 500

const initialized = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`
const call = `${JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo', arguments: {} } })}\n`

/** Starts a program, has it do something, and ends it; ms from its start until that was done. */
export async function timed(
  [program, ...args]: Command,
  cwd: string,
  does: (write: Writable, read: Readable) => Promise<void>,
  env?: Readonly<Record<string, string>>,
): Promise<number> {
  const began = performance.now()
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'ignore'],
    cwd,
    ...(env !== undefined && { env }),
  })
  try {
    await once(child, 'spawn')
    await does(child.stdin, child.stdout)
    return performance.now() - began
  } finally {
    await ended(child)
  }
}

/** Says a line, hello unless it is another, and waits for the next one that comes. */
export async function answered(write: Writable, read: Readable, request = hello): Promise<void> {
  const lines = createInterface({ input: read })
  const line = heard(lines, 'line')
  write.once('error', () => undefined) // whoever ends before it reads, ends its output too
  write.write(request)
  await line
  lines.close()
}

/** Says hello and calls a tool. */
export async function calledOnce(write: Writable, read: Readable): Promise<void> {
  await answered(write, read)
  write.write(initialized)
  await answered(write, read, call)
}

/** Ends its input, and kills it where it stays for as long, with all that was below it. */
export async function ended(child: ChildProcess, graceMs = usualMs): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const below = descendantsOf(child.pid)
  const exit = once(child, 'exit')
  child.stdin?.end()
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs)
  await exit
  clearTimeout(timer)
  // srt leaves its relays where its command has ended
  for (const { pid } of below) endNow(pid)
}

/**
 * What `up` gives. Where that fails, and as soon as the run is broken off, which it then fails by, `end` is called with what
 * may be left to what was started, ms.
 */
export async function orEnded<T>(
  up: Promise<T>,
  brokenOff: AbortSignal,
  end: (graceMs: number) => Promise<void>,
): Promise<T> {
  const endSoon = (): void => void end(brokenOffMs)
  brokenOff.addEventListener('abort', endSoon, { once: true })
  if (brokenOff.aborted) endSoon()
  try {
    return await up
  } catch (error) {
    await end(usualMs)
    throw error
  } finally {
    brokenOff.removeEventListener('abort', endSoon)
  }
}

/** Kills a process, if it is still there. */
export function endNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has just ended
  }
}

/** What runs a server that Node runs in srt, which may reach nothing; or why there is none. */
export async function srtCommand(
  folder: string,
): Promise<((script: string) => Command) | { readonly absent: string }> {
  const program = await install('srt', folder)
  if (typeof program !== 'string') return program
  const settings = join(folder, 'srt-settings.json')
  const none = { allowedDomains: [], deniedDomains: [] }
  const nothing = { network: none, filesystem: { denyRead: [], allowWrite: [], denyWrite: [] } }
  await writeFile(settings, JSON.stringify(nothing))
  return (script) => [program, '--settings', settings, '-c', `${process.execPath} ${script}`]
}
