// What a governed call costs: calls a second and the daemon's own CPU per call; bare, through a byte pipe, and through a
// session whose journal survives the daemon (`write`) or a power loss (`fsync`). Run: node test/bench/governed-call.ts
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { fixture } from '../support/plain-launch.ts'
import { tempDir } from '../support/temp-dir.ts'

const batch = 64
const args = '{"message":"0123456789abcdef0123456789abcdef"}'

/** Sends calls as answers come, so that there are always as many in flight; returns the time it took, s. */
async function run(write: Writable, read: Readable, calls: number, inFlight = batch): Promise<number> {
  let sent = 0
  let answered = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  const more = (count: number): void => {
    let out = ''
    for (let i = 0; i < count && sent < calls; i++) {
      out += `{"jsonrpc":"2.0","id":${++sent},"method":"tools/call","params":{"name":"echo","arguments":${args}}}\n`
    }
    if (out !== '') write.write(out)
  }
  const count = (chunk: Buffer): void => {
    let lines = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
    answered += lines
    if (answered >= calls) resolve()
    else more(lines)
  }
  read.on('data', count)
  const began = performance.now()
  more(inFlight)
  await promise
  read.off('data', count)
  return (performance.now() - began) / 1000
}

const report = (what: string, inFlight: number, calls: number, seconds: number, cpuUs: number): void => {
  const perSecond = String(Math.round(calls / seconds)).padStart(8)
  const latency = ((seconds / calls) * inFlight * 1e6).toFixed(0).padStart(6)
  const cpu = (cpuUs / calls).toFixed(2).padStart(6)
  process.stdout.write(
    `${what.padEnd(8)} ${String(inFlight).padStart(2)} in flight ${perSecond} calls/s ${latency} µs a call ${cpu} µs CPU\n`,
  )
}

const calls = Number(process.argv[2] ?? 100_000)
const child = spawn(process.execPath, [fixture('raw-echo.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] })
await run(child.stdin, child.stdout, calls)
report('bare', batch, calls, await run(child.stdin, child.stdout, calls), 0)
child.kill()

for (const kind of ['pipe', 'write', 'fsync']) {
  await using dir = await tempDir()
  const path = join(dir.path, 's')
  const daemon = fork(fileURLToPath(new URL('governed-process.ts', import.meta.url)), [path, kind])
  await once(daemon, 'message')
  const cpu = async (): Promise<number> => {
    daemon.send('cpu')
    const [us] = (await once(daemon, 'message')) as [number]
    return us
  }
  const host = connect(path)
  host.write('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n')
  await once(host, 'data')
  await run(host, host, calls)
  for (const inFlight of [1, batch]) {
    const some = inFlight === 1 ? calls / 10 : calls
    const before = await cpu()
    const seconds = await run(host, host, some, inFlight)
    report(kind, inFlight, some, seconds, (await cpu()) - before)
  }
  host.destroy()
  daemon.disconnect()
}
