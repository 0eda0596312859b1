// One host on a unix socket and one server, and between them what is to be measured, alone in a process, so that its CPU
// time is its own. Asked by `process.send`, it answers with its CPU time so far, µs.
//
//   pipe    bytes, as they come
//   relay   lines, each parsed as JSON and passed as it came: what any relay that looks at messages does
//   write   a governed session, whose journal survives the daemon
//   fsync   the same, whose journal survives a loss of power
import { createServer, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { inlineMore, markLater, optimizeSooner } from '../../src/lib/engine.ts'
import { LineSplitter } from '../../src/lib/lines.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import { LogRing } from '../../src/supervisor/instance/log-ring.ts'
import { Outlet } from '../../src/supervisor/lanes/outlet.ts'
import { Questions } from '../../src/supervisor/questions/questions.ts'
import { TaskIds } from '../../src/supervisor/lanes/tasks.ts'
import { Session } from '../../src/supervisor/session/session.ts'
import { allowAll } from '../support/attach.ts'
import { governanceDefaults, governed } from '../support/governance.ts'
import { noPools, plainLaunch } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { caller } from '../support/supervisor.ts'

const [path = '', kind = 'write'] = process.argv.slice(2)
inlineMore() // all three as the daemon does
optimizeSooner()
markLater()
const server = serverSettings('raw-echo.mjs')
const durability = kind === 'fsync' ? 'fsync' : 'write'
const settings = { journal: { ...governanceDefaults.journal, durability } } as const
const { policy } = await governed({ servers: [server], rules: allowAll, emit: () => undefined, settings })

createServer((host) => void serve(host)).listen(path, () => process.send?.('ready'))

async function serve(host: Socket): Promise<void> {
  if (kind === 'pipe' || kind === 'relay') {
    const launched = await plainLaunch(server, 'i' as never, {
      signal: new AbortController().signal,
      registered: () => undefined,
      principal: '0',
    })
    const join = kind === 'pipe' ? pipe : relay
    join(host, inputOf(launched))
    join(launched.stdout, host)
    return
  }
  new Session({
    server,
    caller: caller(),
    toolLimit: 100,
    ports: { ...policy, emit: () => undefined, launch: plainLaunch, pools: noPools },
    logs: new LogRing(1000),
    verdicts: { get: () => null, set: () => undefined },
    lost: () => undefined,
    attempt: null,
    tasks: new TaskIds(),
    questions: new Questions(),
    runsUnasked: false,
    shared: null,
  }).take(host, Buffer.alloc(0))
}

interface Sink {
  write(bytes: Buffer): boolean
}

function pipe(from: Readable, to: Sink): void {
  from.on('data', (chunk: Buffer) => void to.write(chunk))
}

function relay(from: Readable, to: Sink): void {
  const outlet = new Outlet((bytes) => void to.write(bytes))
  const lines = new LineSplitter(server.output.lineBytes, {
    line(bytes, text, start, end) {
      const message = JSON.parse(text.slice(start, end)) as { readonly jsonrpc: unknown }
      if (message.jsonrpc === '2.0') outlet.pass(bytes, start, end + 1)
    },
    overlong: () => undefined,
    overlongEnd: () => undefined,
  })
  from.on('data', (chunk: Buffer) => {
    lines.push(chunk)
    outlet.flush()
  })
}

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.(user + system)
})
process.on('disconnect', () => process.exit())
