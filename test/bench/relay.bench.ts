// What the relay costs: calls a second and its own CPU per call with 64 in flight; bare, through a byte pipe, through a session.
// Run: node test/bench/relay.bench.ts
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { fixture } from '../support/plain-launch.ts'
import { tempDir } from '../support/temp-dir.ts'

const calls = 200_000
const inFlight = 64
const args = '{"message":"0123456789abcdef0123456789abcdef"}'

/** Sends calls as answers come, so that there are always as many in flight; returns the time it took, s. */
async function run(write: Writable, read: Readable): Promise<number> {
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

const report = (what: string, seconds: number, cpuUs: number): void => {
  const perSecond = Math.round(calls / seconds)
  const cpu = (cpuUs / calls).toFixed(2)
  process.stdout.write(
    `${what.padEnd(10)} ${String(perSecond).padStart(8)} calls/s ${cpu.padStart(6)} µs CPU a call\n`,
  )
}

const child = spawn(process.execPath, [fixture('raw-echo.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] })
await run(child.stdin, child.stdout)
report('bare', await run(child.stdin, child.stdout), 0)
child.kill()

for (const kind of ['pipe', 'session']) {
  await using dir = await tempDir()
  const path = join(dir.path, 's')
  const relay = fork(fileURLToPath(new URL('relay-process.ts', import.meta.url)), [path, kind])
  await once(relay, 'message')
  const cpu = async (): Promise<number> => {
    relay.send('cpu')
    const [us] = (await once(relay, 'message')) as [number]
    return us
  }
  const host = connect(path)
  host.write('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n')
  await once(host, 'data')
  await run(host, host)
  const before = await cpu()
  const seconds = await run(host, host)
  report(kind, seconds, (await cpu()) - before)
  host.destroy()
  relay.disconnect()
}
