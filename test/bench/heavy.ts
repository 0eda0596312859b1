// How long a heavy call holds the daemon's one thread: the longest turn of the event loop, by processor time, in a process with
// a host, a session, its governor and its journal. Every other host waits for that turn.
// Run: node test/bench/heavy.ts [shape]…
import { setTimeout as after } from 'node:timers/promises'
import { attach } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { serverSettings } from '../support/server-settings.ts'
import { shapes } from './shapes.ts'

const names = process.argv.slice(2)
const unknown = names.filter((name) => !Object.hasOwn(shapes, name))
if (unknown.length > 0) {
  process.stderr.write(
    `heavy: no shape is called ${unknown.join(', ')}: use ${Object.keys(shapes).join(', ')}\n`,
  )
  process.exit(7)
}
await using host = await attach(serverSettings('raw-echo.mjs'))
host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: {} })
await host.answer('i')

let [longest, before, isOver] = [0, spent(), false]
function turn(): void {
  const now = spent()
  longest = Math.max(longest, now - before)
  before = now
  if (!isOver) setImmediate(turn)
}
setImmediate(turn)
for (const [name, shape] of Object.entries(shapes)) {
  if (names.length > 0 && !names.includes(name)) continue
  const call = { name: 'echo', arguments: '$' }
  const message = JSON.stringify({ jsonrpc: '2.0', id: name, method: 'tools/call', params: call })
  const line = Buffer.from(`${message.replace('"$"', () => `{"v":${shape()}}`)}\n`)
  await after(300)
  longest = 0
  const lines = host.lines.length
  host.send(line)
  await eventually(() => host.lines.length > lines, 60_000)
  await after(500) // the outcome's record
  process.stdout.write(
    `${name.padEnd(24)}${(line.length / 1e6).toFixed(1).padStart(6)} MB${longest.toFixed(0).padStart(6)} ms\n`,
  )
}
isOver = true

/** Processor time of this thread, ms. */
function spent(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
