// A session and its governance alone in a process, so that its CPU time is its own: one host on a unix socket, one server.
// Asked by `process.send`, it answers with its CPU time so far, µs.
import { createServer, type Socket } from 'node:net'
import { LogRing } from '../../src/supervisor/log-ring.ts'
import { Session } from '../../src/supervisor/session.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import { allowAll } from '../support/attach.ts'
import { governanceDefaults, governed } from '../support/governance.ts'
import { plainLaunch } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { caller } from '../support/supervisor.ts'

const [path = '', kind = 'write'] = process.argv.slice(2)
const server = serverSettings('raw-echo.mjs')
const durability = kind === 'fsync' ? 'fsync' : 'write'
const settings = { journal: { ...governanceDefaults.journal, durability } } as const
const { policy } = await governed({ servers: [server], rules: allowAll, emit: () => undefined, settings })

createServer((host) => void serve(host)).listen(path, () => process.send?.('ready'))

async function serve(host: Socket): Promise<void> {
  if (kind === 'pipe') {
    const launched = await plainLaunch(server, 'i' as never, {
      signal: new AbortController().signal,
      registered: () => undefined,
      principal: '0',
    })
    host.pipe(inputOf(launched))
    launched.stdout.pipe(host)
    return
  }
  new Session({
    server,
    caller: caller(),
    toolLimit: 100,
    ports: { ...policy, emit: () => undefined, launch: plainLaunch },
    logs: new LogRing(1000),
    verdicts: { get: () => null, set: () => undefined },
    lost: () => undefined,
  }).take(host, Buffer.alloc(0))
}

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.(user + system)
})
process.on('disconnect', () => process.exit())
