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

const megabytes = 100
const atOnce = 200
const address = '127.0.0.1'
const token = 'bench_0123456789abcdef0123456789abcdef'
/** DESIGN.md, Numbers to reach: added at the median, ms; PSS beside the server, MiB */
const targets: Readonly<Record<string, number>> = { tunnel: 1, swap: 3, memory: 1.5 }

const say = (line = ''): void => void process.stdout.write(`${line}\n`)
const quantile = (them: readonly number[], q: number): number =>
  [...them].sort((a, b) => a - b)[Math.min(them.length - 1, Math.floor(q * them.length))] ?? Number.NaN
const median = (them: readonly number[]): number => quantile(them, 0.5)
const held = (value: number, target: number | undefined): string =>
  target === undefined ? '' : `, target ${target}: ${value <= target ? 'held' : 'MISSED'}`

let isEnding = false

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

/** Medians with their spread. The tenth is what a busy machine shows of a calm one; targets are for the median. */
function report(what: string, unit: string, found: ReadonlyMap<string, readonly number[]>): void {
  const base = median(found.get('direct') ?? [])
  say(`\n${what}`)
  for (const [name, them] of found) {
    const middle = median(them)
    const [tenth = '', ...quartiles] = [0.1, 0.25, 0.75].map((q) => quantile(them, q).toFixed(2))
    const added = `${(middle - base >= 0 ? '+' : '') + (middle - base).toFixed(2)} ${unit}`
    const judged = unit === 'ms' && what.startsWith('new') ? held(middle - base, targets[name]) : ''
    const beside = name === 'direct' ? '' : `${added}${judged}`
    say(
      `  ${name.padEnd(8)}${middle.toFixed(2).padStart(9)} ${unit.padEnd(6)} (quartiles ${quartiles.join(' to ')}, tenth ${tenth})  ${beside}`,
    )
  }
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
  await using stack = new AsyncDisposableStack()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      isEnding = true
      void stack.disposeAsync().finally(() => process.exit(1))
    })
  const dir = stack.use(await tempDir())
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
  const at = stack.use(
    await place(
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
        client: stack.use(await direct(dir.path, ['tunnel.test', 'swap.test'], address)),
        way: { host: 'tunnel.test', port, name: 'tunnel.test', ca, token },
      },
    ],
    ['tunnel', { client: ours, way: { host: 'tunnel.test', port, name: 'tunnel.test', ca, token } }],
    ['swap', { client: ours, way: { host: 'swap.test', port, name: 'swap.test' } }],
  ])
  if (hasPeers) {
    const peer = await srt(dir.path, address)
    if (typeof peer === 'string') say(`srt is not measured: ${peer}`)
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
  report('new TLS connection and one request', 'ms', fresh)
  const speed = async (way: Way): Promise<number> =>
    megabytes / ((await ask(way, 'request', { path: '/big' })) / 1000)
  report(`download of ${megabytes} MB over TLS`, 'MB/s', await turns(ways, 5, speed))
  const crowd = (way: Way): Promise<number> => ask(way, 'crowd', { count: atOnce })
  report(`${atOnce} such connections at once`, 'ms', await turns(ways, 5, crowd))

  say('\nprocesses beside the server, and their PSS')
  for (const [name, { client: it }] of new Map(
    [...ways].filter(([name]) => name === 'swap' || name === 'srt'),
  )) {
    const { count, mib } = besideOf(it.pid, name === 'swap')
    const size = mib === null ? 'not readable for this user' : `${mib.toFixed(2)} MiB`
    say(
      `  ${(name === 'swap' ? 'ours' : name).padEnd(8)}${count} processes, ${size}${name === 'swap' && mib !== null ? held(mib, targets['memory']) : ''}`,
    )
  }
}

const words = process.argv.slice(2)
if (words[0] === 'host') await serveHost(JSON.parse(words[1] ?? '') as { cert: string; key: string })
else {
  const rounds = Number(words.find((it) => /^\d+$/.test(it)) ?? 300)
  try {
    await measure(rounds, words.includes('--peers'))
    process.exit()
  } catch (error) {
    // What a signal breaks off is no news
    if (!isEnding) throw error
  }
}
