// Two thousand connections through one door, then as many at once as it takes; tells what the process holds before and after.
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { collect, echo, testDoor, upstream } from '../../support/egress-door.ts'
import { eventually } from '../../support/eventually.ts'

const server = await upstream(echo)
const it = await testDoor({
  grants: [{ port: server.port, tls: false }],
  names: { 'allowed.com': ['127.0.0.1'] },
})
const line = `SP1 connect allowed.com ${server.port}\n`

const count = (): { descriptors: number; resources: Record<string, number> } => {
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  delete resources['FSReqCallback']
  return { descriptors: readdirSync('/proc/self/fd').length, resources }
}
const one = async (): Promise<void> => {
  const socket = it.says(`${line}ping`)
  socket.end()
  const answer = await collect(socket)
  if (answer !== 'ping') throw new Error(`answered ${JSON.stringify(answer)}`)
}
/** What closes in the next turns of the loop is given them. */
const settled = async (than: ReturnType<typeof count> | null): Promise<ReturnType<typeof count>> => {
  if (than !== null)
    await eventually(() => JSON.stringify(count()) === JSON.stringify(than), 3000).catch(() => undefined)
  return count()
}

for (let i = 0; i < 20; i++) await one()
await eventually(() => it.door.connections().length === 0)
const before = count()
const skipped = it.events.length
for (let i = 0; i < 2000; i++) await one()
const sockets = Array.from({ length: 256 }, () => it.says(line))
await eventually(() => it.door.connections().length === 256)
await it.told('opened', 20 + 2000 + 256)
const most = it.door.connections().length
await once(it.says(line).resume(), 'close').catch(() => undefined)
for (const socket of sockets) socket.end()
await Promise.all(sockets.map(collect))
await eventually(() => it.door.connections().length === 0)
const after = await settled(before)
await it[Symbol.asyncDispose]()
await server[Symbol.asyncDispose]()
await eventually(() => !process.getActiveResourcesInfo().includes('TCPServerWrap'), 3000).catch(
  () => undefined,
)
const disposed = count()
const kinds = it.events.slice(skipped).map(({ kind, reason }) => (kind === 'refused' ? reason : kind))
const ofKind = (kind: string): number => kinds.filter((it) => it === kind).length
process.stdout.write(
  JSON.stringify({
    before,
    after,
    disposed,
    opened: ofKind('opened'),
    closed: ofKind('closed'),
    most,
    tooMany: ofKind('too-many'),
  }),
)
