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
  'swapped.test': rebinding(),
}
const names = Object.keys(zone)
const queries = await serveNames(({ name, type }) => zone[name]?.(type) ?? 'NXDOMAIN')
const reached: string[] = []
const server = createServer((request, response) => {
  const has = request.headers.authorization?.endsWith(token) === true ? ' with the token' : ''
  reached.push(`${request.headers.host} at ${request.socket.localAddress}${has}`)
  // Each request has a connection of its own, and so a judgement of its own.
  response.setHeader('connection', 'close').end(request.socket.localAddress)
})
server.listen(port, '::')
await once(server, 'listening')

const entry = (host: string): object => ({ host, port, private: host === 'own.test', reason: 'a test' })
const token = 'real-0123456789-token-abcdefghij'
const credential = { use: 'api', inject: 'egress', as: 'API_TOKEN', hosts: [`swapped.test:${port}`] }
const servers = {
  lied: reachesOut(names.map(entry)),
  swaps: reachesOut([{ ...entry('swapped.test'), tls: false }], { credentials: [credential] }),
}
await using at = await reachingPlace(
  servers,
  { allow: names.map(entry), credentials: ['egress'] },
  { credentials: { api: { env: 'TEST_TOKEN' } } },
)
const { process: child, client } = await serve(at, { TEST_TOKEN: token })
const call = callThrough(() => client)
const outcomes: Record<string, unknown> = {}
const play = async (title: string, host: string, by: keyof typeof servers = 'lied'): Promise<void> => {
  const [asked, refused] = [queries.length, recordsAbout(at, 'egress.refused', by).length]
  const { text, status } = await call(by, 'ask', { url: `http://${host}:${port}/` })
  if (status !== 200) await eventually(() => recordsAbout(at, 'egress.refused', by).length > refused)
  const [record] = recordsAbout(at, 'egress.refused', by).slice(refused)
  outcomes[title] = {
    at: status === 200 ? text : null,
    reason: record?.body['reason'] ?? null,
    asked: queries.slice(asked).filter(({ type }) => type === 'A').length,
  }
}
for (const host of names.filter((it) => it !== 'second.test' && it !== 'swapped.test')) await play(host, host)
for (const title of ['rebinding.test again', 'rebinding.test a third time'])
  await play(title, 'rebinding.test')
for (const title of ['swapped.test', 'swapped.test again']) await play(title, 'swapped.test', 'swaps')

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
  await eventually(() => said.includes('"error"'))
  running.stdin?.end()
  await ended
  return reached[before] ?? 'nowhere'
}
outcomes['run'] = [await run(), await run()]

await client[Symbol.asyncDispose]()
child.kill('SIGTERM')
await eventually(() => child.exitCode !== null)
server.closeAllConnections()
server.close()
process.stdout.write(`${JSON.stringify({ outcomes, reached })}\n`)
await at[Symbol.asyncDispose]()
process.exit()
