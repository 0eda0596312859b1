// A daemon whose machine's resolver lies: what its servers reach by names that lead inwards, sooner or later, told as JSON.
import { createServer } from 'node:http'
import { once } from 'node:events'
import { serveNames, type Answer, type Reply } from '../../support/dns-server.ts'
import { serve } from '../../support/daemon.ts'
import { eventually } from '../../support/eventually.ts'
import { callThrough, reachesOut, reachingPlace, recordsAbout } from '../../support/reaching-out.ts'

const [publicly, elsewhere, inside] = ['93.184.216.34', '93.184.216.40', '10.0.0.5']
const port = 7000
const a = (data: string, name?: string): Answer => ({ type: 'A', data, ...(name !== undefined && { name }) })
const cname = (data: string, name?: string): Answer => ({
  type: 'CNAME',
  data,
  ...(name !== undefined && { name }),
})
const ipv4 =
  (...answers: readonly Answer[]) =>
  (type: string): Reply =>
    type === 'A' ? answers : answers.filter((it) => it.type === 'CNAME')

/** Public for the first question of all, then this machine; each answer may be forgotten at once. */
const rebinding = (): ((type: string) => Reply) => {
  let asked = 0
  return (type) => (type === 'A' ? [a(asked++ === 0 ? publicly : '127.0.0.1')] : [])
}
const zone: Readonly<Record<string, (type: string) => Reply>> = {
  'rebinding.test': rebinding(),
  'second.test': rebinding(),
  'families.test': (type) =>
    type === 'A' ? [a(publicly)] : type === 'AAAA' ? [{ type: 'AAAA', data: '::1' }] : [],
  'private.test': ipv4(a(inside)),
  'metadata.test': ipv4(a('169.254.169.254')),
  'many.test': ipv4(...['127.0.0.1', inside, '169.254.169.254', '0.0.0.0', elsewhere].map((it) => a(it))),
  'all.test': ipv4(...Array.from({ length: 25 }, (_, index) => a(`10.0.0.${index + 1}`))),
  'chain.test': ipv4(cname('one.corp'), cname('two.corp', 'one.corp'), a(inside, 'two.corp')),
  'long.test': ipv4(cname('one.edge'), cname('two.edge', 'one.edge'), a(publicly, 'two.edge')),
  'own.test': ipv4(a('127.0.0.1')),
}
const names = Object.keys(zone)
const queries = await serveNames(({ name, type }) => zone[name]?.(type) ?? 'NXDOMAIN')
const reached: string[] = []
const server = createServer((request, response) => {
  reached.push(`${request.headers.host} at ${request.socket.localAddress}`)
  // Each request has a connection of its own, and so a judgement of its own.
  response.setHeader('connection', 'close').end(request.socket.localAddress)
})
server.listen(port, '::')
await once(server, 'listening')

const entry = (host: string): object => ({ host, port, private: host === 'own.test', reason: 'a test' })
await using at = await reachingPlace({ lied: reachesOut(names.map(entry)) }, { allow: names.map(entry) })
const { process: child, client } = await serve(at)
const call = callThrough(() => client)
const outcomes: Record<string, unknown> = {}
const play = async (title: string, host: string): Promise<void> => {
  const [asked, refused] = [queries.length, recordsAbout(at, 'egress.refused', 'lied').length]
  const { text, failed } = await call('lied', 'ask', { url: `http://${host}:${port}/` })
  if (failed !== undefined)
    await eventually(() => recordsAbout(at, 'egress.refused', 'lied').length > refused, 10_000)
  const [record] = recordsAbout(at, 'egress.refused', 'lied').slice(refused)
  outcomes[title] = {
    at: text ?? null,
    reason: record?.body['reason'] ?? null,
    asked: queries.slice(asked).filter(({ type }) => type === 'A').length,
  }
}
for (const host of names.filter((it) => it !== 'second.test')) await play(host, host)
for (const title of ['rebinding.test again', 'rebinding.test a third time'])
  await play(title, 'rebinding.test')

/** `sallyport run`, with no daemon and no configuration: where the one request of its program came out. */
const run = async (): Promise<string> => {
  const before = reached.length
  const args = [
    '--egress',
    `second.test:${port}`,
    '--',
    'curl',
    '-sSf',
    '--noproxy',
    '*',
    `http://second.test:${port}/`,
  ]
  const running = at.start(['run', ...args], { SALLYPORT_CONFIG: '' })
  const ended = once(running, 'exit')
  let said = ''
  running.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  // It starts with the host's first word, which it never answers: once it has ended, that is an error.
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'host', version: '1' },
  }
  running.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`)
  await eventually(() => said.includes('"error"'), 20_000)
  running.stdin?.end()
  await ended
  return reached[before] ?? 'nowhere'
}
outcomes['run'] = [await run(), await run()]

await client[Symbol.asyncDispose]()
child.kill('SIGTERM')
await eventually(() => child.exitCode !== null, 20_000)
server.closeAllConnections()
server.close()
process.stdout.write(`${JSON.stringify({ outcomes, reached })}\n`)
await at[Symbol.asyncDispose]()
process.exit()
