// A server without a grant reaches nobody: not the host, not the machine's other sockets, not a name server.
import { createServer, type Server } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  attempts,
  bare,
  bareAttempts,
  broken,
  brokenAttempts,
  confined,
  daemons,
  openOf,
  withoutFilter,
  withoutOption,
} from '../support/escape.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Reach {
  readonly connect: Record<string, string>
  readonly lookup: Record<string, string>
  readonly interfaces: string[]
  readonly routes: number
}

const servers: Server[] = []
let folder: Awaited<ReturnType<typeof tempDir>>
let wanted: string
let tcp: string
let abstract: string
let pathname: string

beforeAll(async () => {
  folder = await tempDir()
  const listen = async (...address: [number, string] | [string]): Promise<void> => {
    const server = createServer((socket) => socket.end())
    servers.push(server)
    if (typeof address[0] === 'number') server.listen(address[0], address[1])
    else server.listen(address[0])
    await once(server, 'listening')
  }
  await listen(0, '127.0.0.1')
  await listen('\0sallyport-test-abstract')
  await listen(join(folder.path, 'socket'))
  const address = servers[0]?.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const sockets = [
    { host: '127.0.0.1', port },
    { path: '\0sallyport-test-abstract' },
    { path: join(folder.path, 'socket') },
    { host: '192.0.2.1', port: 443 },
    { host: '169.254.169.254', port: 80 },
    { host: '::1', port },
  ]
  ;[tcp, abstract, pathname] = sockets.map((socket) => JSON.stringify(socket)) as [string, string, string]
  wanted = JSON.stringify({ sockets, names: ['localhost.example.com', 'metadata.google.internal'] })
})

afterAll(async () => {
  for (const server of servers) server.close()
  await folder[Symbol.asyncDispose]()
})

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server connects to nothing, resolves nothing, and has no interface but its own loopback', async () => {
    const found = JSON.parse(await confined(daemon, 'probe-reach.mjs', [wanted])) as Reach
    expect(Object.keys(found.connect)).toHaveLength(6)
    expect(Object.entries(found.connect).filter(([, verdict]) => verdict === 'open')).toEqual([])
    expect(Object.entries(found.lookup).filter(([, verdict]) => verdict === 'open')).toEqual([])
    expect(found.interfaces.filter((name) => name !== 'lo')).toEqual([])
    expect(found.routes).toBe(0)
  })

  test('a server gets no socket of another kind: vsock, packet, raw, netlink, multipath', async () => {
    expect(openOf(await attempts(daemon, 'network.'))).toEqual([])
  })
})

test('bare, the listeners are reached', async () => {
  const { connect } = JSON.parse(await bare('probe-reach.mjs', [wanted])) as Reach
  expect([connect[tcp], connect[abstract], connect[pathname]]).toEqual(['open', 'open', 'open'])
})

test('without the network namespace the host’s listeners are reached, but not the socket that is not mounted', async () => {
  const output = await broken('probe-reach.mjs', [wanted], withoutOption('--unshare-net'))
  const { connect } = JSON.parse(output) as Reach
  expect([connect[tcp], connect[abstract], connect[pathname]]).toEqual(['open', 'open', 'ENOENT'])
})

test('an ordinary user has the other kinds of socket, and so would a server without the filter', async () => {
  const always = ['network.uevent', 'network.audit']
  expect(openOf(await bareAttempts('network.'))).toEqual(expect.arrayContaining(always))
  expect(openOf(await brokenAttempts('network.', withoutFilter))).toEqual(expect.arrayContaining(always))
})
