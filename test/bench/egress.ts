// What the way out costs a program in a sandbox, through the whole daemon (resolver, relay, door, and where a credential is
// carried the swap), beside a direct connection and, with --peers, beside srt. The same client measures all, by turns in one run.
// Run after npm run build: node test/bench/egress.ts [rounds] [--peers]. It needs what a launch needs; srt comes from npm, into
// a folder that is removed, and needs bwrap, socat and rg. All but srt's client, which names an address to its proxy, look
// the host's name up by getaddrinfo: direct in a file of names, in the sandbox as there.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { testAuthority } from '../support/certificates.ts'
import { configOf, fixture, place, serve } from '../support/daemon.ts'
import { tempDir } from '../support/temp-dir.ts'
import { besideOf, type Client, direct, srt } from './clients.ts'
import { Undoing } from '../support/broken-off.ts'
import { type Arm, publish } from './figures.ts'

const megabytes = 100
const atOnce = 200
const address = '127.0.0.1'
const token = 'bench_0123456789abcdef0123456789abcdef'

interface Way {
  readonly client: Client
  readonly way: Readonly<Record<string, unknown>>
}

/** All ways by turns, each round beginning with another one, so that whatever else the machine does meets them all. */
async function turns(
  ways: ReadonlyMap<string, Way>,
  rounds: number,
  one: (way: Way) => Promise<number>,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const found = new Map([...ways.keys()].map((name) => [name, [] as number[]]))
  const names = [...ways]
  for (let round = 0; round < rounds; round++)
    for (const index of names.keys()) {
      const [name, way] = names[(index + round) % names.length] ?? []
      if (name !== undefined && way !== undefined) found.get(name)?.push(await one(way))
    }
  return found
}

/** The ways as arms of a figure; a peer that is not there says why. */
function arms(found: ReadonlyMap<string, readonly number[]>, absent: string | null): readonly Arm[] {
  const kinds: Readonly<Record<string, Arm['kind']>> = {
    direct: 'base',
    tunnel: 'ours',
    swap: 'ours',
    srt: 'peer',
  }
  const there = [...found].map(([name, values]): Arm => ({ name, kind: kinds[name] ?? 'ours', values }))
  return absent === null ? there : [...there, { name: 'srt', kind: 'peer', values: [], absent }]
}

/** The host, in a process of its own: a word, or so many megabytes. */
async function serveHost(certificate: { readonly cert: string; readonly key: string }): Promise<void> {
  const part = Buffer.alloc(65_536, 'some text that is no secret, as an API may answer it; ')
  const server = createServer(certificate, (request, response) => {
    if (request.url !== '/big') return void response.end('ok')
    let left = Math.ceil((megabytes * 1_000_000) / part.length)
    const more = (): void => {
      while (left-- > 0) if (!response.write(part)) return void response.once('drain', more)
      response.end()
    }
    more()
  }).listen(0, address, 1024)
  await once(server, 'listening')
  process.send?.((server.address() as AddressInfo).port)
  process.once('disconnect', () => process.exit())
}

async function measure(rounds: number, hasPeers: boolean): Promise<void> {
  await using stack = new Undoing()
  const dir = await stack.starting(tempDir)
  await chmod(dir.path, 0o755)
  const authority = await testAuthority(dir.path)
  const certificate = await authority.issue('swap.test')
  const host = fork(fileURLToPath(import.meta.url), ['host', JSON.stringify(certificate)])
  stack.defer(() => void host.kill())
  const [port] = (await once(host, 'message')) as [number]

  const allow = ['tunnel.test', 'swap.test'].map((name) => ({
    host: name,
    port,
    address,
    private: true,
    reason: 'a benchmark',
  }))
  const at = await stack.starting(() =>
    place(
      configOf(
        {
          bench: fixture('measures', {
            profile: 'open',
            egress: allow.map((it) => ({ ...it, tls: true })),
            credentials: [
              {
                use: 'api',
                inject: 'egress',
                as: 'API_TOKEN',
                hosts: [`swap.test:${port}`],
                ca_file: authority.caFile,
              },
            ],
            timeouts: { call_ms: 120_000 },
          }),
        },
        { credentials: { api: { env: 'BENCH_TOKEN' } } },
      ),
    ),
  )
  await mkdir(join(at.folder, 'profiles'), { mode: 0o700 })
  const profile = {
    version: 1,
    name: 'open',
    extends: 'node',
    widens: true,
    network: { mode: 'allowlist', allow },
    credentials: ['egress'],
  }
  await writeFile(join(at.folder, 'profiles', 'open.yaml'), JSON.stringify(profile), { mode: 0o600 })
  const { process: daemon, client } = await serve(at, { BENCH_TOKEN: token })
  stack.defer(() => client[Symbol.asyncDispose]())
  const ours: Client = {
    pid: daemon.pid ?? 0,
    async ask(tool, args) {
      const { data } = await client.call('tools/call', { server: 'bench', tool, arguments: { ...args } })
      return (data as { structuredContent: { ms: number; bytes: number } }).structuredContent
    },
  }
  const { ca } = authority
  const ways = new Map<string, Way>([
    [
      'direct',
      {
        client: await stack.starting(() => direct(dir.path, ['tunnel.test', 'swap.test'], address)),
        way: { host: 'tunnel.test', port, name: 'tunnel.test', ca, token },
      },
    ],
    ['tunnel', { client: ours, way: { host: 'tunnel.test', port, name: 'tunnel.test', ca, token } }],
    ['swap', { client: ours, way: { host: 'swap.test', port, name: 'swap.test' } }],
  ])
  let absent: string | null = null
  if (hasPeers) {
    const peer = await srt(dir.path, address)
    if (typeof peer === 'string') absent = peer
    else
      ways.set('srt', {
        client: stack.use(peer),
        way: { host: address, port, name: 'tunnel.test', ca, token, isProxied: true },
      })
  }

  const ask = async ({ client: it, way }: Way, tool: string, args: object): Promise<number> =>
    (await it.ask(tool, { way, ...args })).ms
  await turns(ways, 20, (way) => ask(way, 'request', { path: '/' }))
  const fresh = await turns(ways, rounds, (way) => ask(way, 'request', { path: '/' }))
  const speed = async (way: Way): Promise<number> =>
    megabytes / ((await ask(way, 'request', { path: '/big' })) / 1000)
  const down = await turns(ways, 5, speed)
  const crowd = await turns(ways, 5, (way) => ask(way, 'crowd', { count: atOnce }))
  const ourSize = besideOf(ours.pid, true)
  const theirs = ways.get('srt')
  const size = (beside: ReturnType<typeof besideOf>): Pick<Arm, 'values' | 'absent'> =>
    beside.mib === null ? { values: [], absent: 'not readable for this user' } : { values: [beside.mib] }
  const srtSize = theirs === undefined ? null : besideOf(theirs.client.pid, false)
  publish([
    {
      id: 'egress',
      what: 'a new TLS connection and one request, from a sandbox through the whole daemon',
      unit: 'ms',
      arms: arms(fresh, absent),
      judged: [
        { arm: 'tunnel', by: 'added', target: 1 },
        { arm: 'swap', by: 'added', target: 3 },
      ],
    },
    {
      id: 'download',
      what: `a download of ${megabytes} MB over TLS`,
      unit: 'MB/s',
      arms: arms(down, absent),
      judged: [],
    },
    {
      id: 'crowd',
      what: `${atOnce} such connections at once, until the last is done`,
      unit: 'ms',
      arms: arms(crowd, absent),
      judged: [],
    },
    {
      id: 'egress-memory',
      what: 'memory beside a server with a way out: all processes but the daemon, PSS',
      unit: 'MiB',
      arms: [
        { name: `ours, ${ourSize.count} processes`, kind: 'ours', ...size(ourSize) },
        ...(srtSize === null
          ? []
          : [{ name: `srt, ${srtSize.count} processes`, kind: 'peer' as const, ...size(srtSize) }]),
        ...(absent === null ? [] : [{ name: 'srt', kind: 'peer' as const, values: [], absent }]),
      ],
      judged: [{ arm: `ours, ${ourSize.count} processes`, by: 'value', target: 1.5 }],
    },
  ])
}

const words = process.argv.slice(2)
if (words[0] === 'host') await serveHost(JSON.parse(words[1] ?? '') as { cert: string; key: string })
else {
  const rounds = Number(words.find((it) => /^\d+$/.test(it)) ?? 300)
  await measure(rounds, words.includes('--peers'))
  process.exit()
}
