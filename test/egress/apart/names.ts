// Names that lead somewhere else: played against a door in a network of its own, and told as JSON.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { collect, echo, testDoor, upstream } from '../../support/egress-door.ts'
import { serveNames } from '../../support/dns-server.ts'
import type { Answer, Reply } from '../../support/dns-server.ts'
import { secondFamilyMs } from '../../../src/egress/limits.ts'

const publicly = '93.184.216.34'
const elsewhere = '2606:2800:220:1::1'
const a = (data: string): Answer => ({ type: 'A', data })
const aaaa = (data: string): Answer => ({ type: 'AAAA', data })
const alias: Answer = { type: 'CNAME', data: 'edge.example' }
const after = async <T>(ms: number, value: T): Promise<T> => setTimeout(ms, value)
const port = 7000

let rebound = 0
const zone: Readonly<Record<string, (type: string, over: string) => Reply | Promise<Reply>>> = {
  'public.test': (type) => (type === 'A' ? [a(publicly)] : []),
  'rebinding.test': (type) => (type === 'A' ? [a(rebound++ === 0 ? publicly : '127.0.0.1')] : []),
  'private.test': (type) => (type === 'A' ? [a('10.0.0.5')] : []),
  'mixed.test': (type) => (type === 'A' ? [a('127.0.0.1'), a('10.0.0.5')] : [aaaa('::1'), aaaa(elsewhere)]),
  'metadata.test': (type) => (type === 'A' ? [a('169.254.169.254')] : [aaaa('fd00:ec2::254')]),
  'wrapped.test': (type) =>
    type === 'A' ? [] : [aaaa('64:ff9b::7f00:1'), aaaa('::ffff:7f00:1'), aaaa('2002:7f00:1::')],
  'alias.test': (type) => [
    { type: 'CNAME', data: 'internal.corp' },
    ...(type === 'A' ? [{ type: 'A', data: '10.0.0.5', name: 'internal.corp' } as const] : []),
  ],
  'chain.test': (type) => [
    { type: 'CNAME', data: 'edge.example' },
    { type: 'CNAME', data: 'pop.example', name: 'edge.example' },
    ...(type === 'A' ? [{ type: 'A', data: publicly, name: 'pop.example' } as const] : []),
  ],
  'dangling.test': () => [alias],
  'waiting.test': (type) =>
    type === 'A' ? [alias] : after(2 * secondFamilyMs, [alias, { ...aaaa(elsewhere), name: alias.data }]),
  'slow.test': () => 'silence',
  'half.test': (type) => (type === 'A' ? [a(publicly)] : 'silence'),
  'truncated.test': (type, over) => (over === 'udp' ? 'truncated' : type === 'A' ? [a(publicly)] : []),
  'huge.test': (type, over) =>
    over === 'udp'
      ? 'truncated'
      : type === 'A'
        ? Array.from({ length: 2000 }, (_, i) => a(`10.0.${i >> 8}.${i & 255}`))
        : [],
  'gone.test': () => 'NXDOMAIN',
  'empty.test': () => [],
  'broken.test': () => 'SERVFAIL',
  'full.test': (type) => (type === 'A' ? [a('93.184.216.77'), a(publicly)] : []),
  'own.test': (type) => (type === 'A' ? [a('127.0.0.1')] : []),
}

const queries = await serveNames(({ name, type, over }) => zone[name]?.(type, over) ?? 'NXDOMAIN')
const names = [...Object.keys(zone), 'listed.test']
const server = await upstream(echo, { host: '::', port })
const door = await testDoor({
  grants: [...names, '*.wild.test'].map((host) => ({ host, port, tls: false, private: host === 'own.test' })),
  limits: { connectMs: 2000 },
})

/** What came of one connection: its event, the queries that it took, and how long. */
const play = async (name: string, at = door): Promise<unknown> => {
  const [before, asked, began] = [at.events.length, queries.length, performance.now()]
  const dialled = server.accepted()
  const socket = at.says(`SP1 connect ${name} ${port}\n`)
  socket.end()
  await collect(socket)
  const { kind, verdict, reason, address } = at.events[before] ?? {}
  const seen = queries.slice(asked).map(({ type, over }) => `${type} ${over}`)
  return {
    kind,
    verdict,
    reason,
    address,
    queries: seen.sort(),
    dialled: server.accepted() - dialled,
    ms: performance.now() - began,
  }
}

// An address whose listener takes nobody more: its process stands still and its queue is full
const full = spawn(
  process.execPath,
  ['-e', `require('net').createServer().listen(${port + 1}, '93.184.216.77', 1, () => console.log('up'))`],
  { stdio: ['ignore', 'pipe', 'inherit'] },
)
await once(full.stdout, 'data')
full.kill('SIGSTOP')
const filling = Array.from({ length: 4 }, () =>
  connect(port + 1, '93.184.216.77').on('error', () => undefined),
)

const outcomes: Record<string, unknown> = {}
for (const name of names.filter((it) => it !== 'full.test')) outcomes[name] = await play(name)
outcomes['rebinding.test again'] = await play('rebinding.test')
outcomes['secret.attacker.test'] = await play('secret.attacker.test')
outcomes['leak.unlisted.wild.test.evil'] = await play('leak.unlisted.wild.test.evil')
outcomes['a.b.wild.test'] = await play('a.b.wild.test')

const pinned = await testDoor({
  grants: [
    { host: 'pinned.test', port, tls: false, private: false, address: '93.184.216.34' },
    { host: 'pinned-inside.test', port, tls: false, private: false, address: '10.1.2.3' },
    { host: 'pinned-home.test', port, tls: false, private: true, address: '10.1.2.3' },
    { host: 'pinned-metadata.test', port, tls: false, private: true, address: '169.254.169.254' },
    { host: 'pinned-mapped.test', port, tls: false, private: true, address: '::ffff:127.0.0.1' },
  ],
})
for (const name of ['', '-inside', '-home', '-metadata', '-mapped'].map((it) => `pinned${it}.test`))
  outcomes[name] = await play(name, pinned)

const second = await upstream(echo, { host: publicly, port: port + 1 })
const patient = await testDoor({
  grants: [{ host: 'full.test', port: port + 1, tls: false, private: false }],
  limits: { connectMs: 1000 },
})
const held = patient.says(`SP1 connect full.test ${port + 1}\n`)
outcomes['full.test'] = (await patient.told('opened')).address
held.destroy()

for (const socket of filling) socket.destroy()
full.kill('SIGKILL')
for (const it of [door, pinned, patient, second, server]) await it[Symbol.asyncDispose]()
process.stdout.write(`${JSON.stringify(outcomes)}\n`, () => process.exit())
