// What a swapped credential costs: a new TLS connection with one request, a download of 100 MB, and memory for each
// sandbox; direct, through a byte pipe, and through the interceptor. Run: node test/bench/swap.ts [rounds]
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod } from 'node:fs/promises'
import { createServer as createHttpsServer, get } from 'node:https'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createBroker } from '../../src/credentials/broker.ts'
import { createRedactor } from '../../src/credentials/redactor.ts'
import { KnownValues } from '../../src/credentials/values.ts'
import { createInterceptor } from '../../src/egress/intercept/interceptor.ts'
import { newInstanceId } from '../../src/lib/ids.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { testAuthority } from '../support/certificates.ts'
import { tempDir } from '../support/temp-dir.ts'
import { counts } from './counts.ts'

const host = 'localhost'
const token = 'bench_0123456789abcdef0123456789abcdef'
const megabytes = 100

/** A sandbox with one credential for a host. */
const sandboxFor = async (port: number, caFile: string | null) => {
  const instance = newInstanceId()
  const broker = createBroker({
    sources: { api: { kind: 'env', variable: 'API' } },
    environment: { API: token },
    uid: process.getuid?.() ?? 0,
    initPath: await findInitBinary(),
  })
  const secrets = broker.forSandbox({
    server: 'bench',
    instance,
    injections: [
      {
        use: 'api',
        inject: 'egress',
        as: 'API',
        hosts: [{ host, port, caFile }],
        headers: ['authorization'],
        query: false,
        body: false,
        websocket: false,
        placeholder: { prefix: '', length: 40 },
      },
    ],
    violated: () => undefined,
  })
  const lease = await secrets.lease(
    { permit: 'p', call: 'c', names: ['api'], deadlineMs: 3_600_000, attribution: 'window' },
    { signal: AbortSignal.timeout(1000) },
  )
  const { swap, redactor, environment } = secrets
  const interceptor = await createInterceptor({ server: 'bench', instance, life: 'session', swap, redactor })
  return { interceptor, instance, lease, placeholder: environment['API'] ?? '' }
}

/** The host, in a process of its own. */
const serveHost = async (certificate: { readonly cert: string; readonly key: string }): Promise<void> => {
  const part = Buffer.alloc(65_536, 'some text that is no secret, as an API may answer it; ')
  const server = createHttpsServer(certificate, (request, response) => {
    if (request.url !== '/big') {
      response.end('ok')
      return
    }
    let left = (megabytes * 1_000_000) / part.length
    const more = (): void => {
      while (left-- > 0) if (!response.write(part)) return void response.once('drain', more)
      response.end()
    }
    more()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.send?.({ port: (server.address() as AddressInfo).port })
}

/** The door, in a process of its own: one port that pipes, and one that intercepts. */
const serveDoor = async (port: number, caFile: string): Promise<void> => {
  const { interceptor, instance, placeholder } = await sandboxFor(port, caFile)
  const dial = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return socket.setNoDelay(true)
  }
  const grant = { host, port, address: null, private: true, tls: true, reason: 'a benchmark' }
  const target = { host, port, server: 'bench', instance, connection: 'k', grant }
  const log = { swapped: () => undefined, redacted: () => undefined, cut: () => undefined }
  const swapping = createServer(
    (client) => void interceptor.serve(client.setNoDelay(true), target, dial, log),
  )
  const piping = createServer((client) => {
    const up = connect(port, '127.0.0.1').setNoDelay(true)
    client.setNoDelay(true).pipe(up).pipe(client)
    for (const end of [client, up]) end.on('error', () => end.destroy())
  })
  for (const server of [swapping, piping]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  const [swap, pipe] = [swapping, piping].map((server) => (server.address() as AddressInfo).port)
  process.send?.({ swap, pipe, placeholder, certificate: interceptor.certificate })
}

interface Way {
  readonly port: number
  readonly ca: string
  readonly authorization: string
}

/** One request over a connection of its own; gives the time until the last byte, ms. */
const request = async (way: Way, hostPort: number, path: string): Promise<number> => {
  const began = performance.now()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const headers = { Host: `${host}:${hostPort}`, Authorization: way.authorization }
  const { port, ca } = way
  get({ host: '127.0.0.1', port, path, servername: host, ca, agent: false, headers }, (response) => {
    if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`))
    response.resume().on('end', resolve).on('error', reject)
  }).on('error', reject)
  await promise
  return performance.now() - began
}

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0
const say = (what: string, value: string): void =>
  void process.stdout.write(`${what.padEnd(52)} ${value.padStart(12)}\n`)

const start = async (...args: readonly string[]) => {
  const child = fork(fileURLToPath(import.meta.url), args)
  const [message] = (await once(child, 'message')) as [Readonly<Record<string, string>>]
  return { child, message }
}

const measure = async (rounds: number): Promise<void> => {
  await using dir = await tempDir()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(
      signal,
      () => void Promise.resolve(dir[Symbol.asyncDispose]()).finally(() => process.exit(1)),
    )
  await chmod(dir.path, 0o755)
  const authority = await testAuthority(dir.path)
  const certificate = await authority.issue(host)
  const children: ChildProcess[] = []
  const upstream = await start('host', JSON.stringify(certificate))
  children.push(upstream.child)
  const hostPort = Number(upstream.message['port'])
  const door = await start('door', String(hostPort), authority.caFile)
  children.push(door.child)
  const { swap, pipe, placeholder = '', certificate: sandboxCa = '' } = door.message
  const ca = authority.ca
  const ways: Readonly<Record<string, Way>> = {
    direct: { port: hostPort, ca, authorization: `Bearer ${token}` },
    pipe: { port: Number(pipe), ca, authorization: `Bearer ${token}` },
    swap: { port: Number(swap), ca: sandboxCa, authorization: `Bearer ${placeholder}` },
  }

  const times = new Map(Object.keys(ways).map((name) => [name, [] as number[]]))
  for (let round = -20; round < rounds; round++)
    for (const [name, way] of Object.entries(ways)) {
      const ms = await request(way, hostPort, '/')
      if (round >= 0) times.get(name)?.push(ms)
    }
  const direct = median(times.get('direct') ?? [])
  for (const [name, all] of times)
    say(`new TLS connection and one request, ${name}, median`, `${median(all).toFixed(2)} ms`)
  say('added by the swap', `${(median(times.get('swap') ?? []) - direct).toFixed(2)} ms`)

  const speeds = new Map(Object.keys(ways).map((name) => [name, [] as number[]]))
  for (let round = 0; round < 5; round++)
    for (const [name, way] of Object.entries(ways))
      speeds.get(name)?.push(megabytes / ((await request(way, hostPort, '/big')) / 1000))
  for (const [name, all] of speeds)
    say(`download of ${megabytes} MB, ${name}, median`, `${median(all).toFixed(0)} MB/s`)
  for (const child of children) child.kill()

  const chunk = Buffer.alloc(65_536, 'some text that is no secret, as an API may answer it; ')
  for (const count of [0, 1, 4, 16]) {
    const values = new KnownValues()
    for (let index = 0; index < count; index++) values.add(`c${index}`, Buffer.from(`${token}${index}`))
    const stream = createRedactor(values.scanner).mask()
    const run = (): number => {
      const began = performance.now()
      for (let index = 0; index < 1600; index++) stream.push(chunk)
      return (1600 * chunk.length) / 1e6 / ((performance.now() - began) / 1000)
    }
    run()
    const speed = median([run(), run(), run()])
    say(`looking for ${count} secrets in text, one core`, speed > 1e5 ? 'free' : `${speed.toFixed(0)} MB/s`)
  }

  await sandboxFor(hostPort, null)
  globalThis.gc?.()
  const before = process.memoryUsage().rss
  const kept = []
  for (let index = 0; index < 100; index++) kept.push(await sandboxFor(hostPort, null))
  globalThis.gc?.()
  const kilobytes = (process.memoryUsage().rss - before) / 1024 / kept.length
  say('memory for each sandbox with a credential', `${kilobytes.toFixed(0)} KiB`)
  const began = performance.now()
  for (let index = 0; index < 100; index++) await sandboxFor(hostPort, null)
  say('making a sandbox’s authority and a lease', `${((performance.now() - began) / 100).toFixed(2)} ms`)
  for (const { lease } of kept) lease.end()
}

const [role = '', first = '', second = ''] = process.argv.slice(2)
// Whoever started it may be killed: then it ends by itself
if (role !== '' && process.connected) process.once('disconnect', () => process.exit())
if (role === 'host') await serveHost(JSON.parse(first) as { cert: string; key: string })
else if (role === 'door') await serveDoor(Number(first), second)
else {
  await measure(counts({ rounds: 200 }).rounds)
  process.exit()
}
