// What the way out costs beside a direct connection, interleaved in one run: a new TLS connection until its first byte is
// back, a download of 100 MiB, 200 connections at once, and the memory of the door's process.
// Run: node test/bench/door.ts [rounds]. With --door PATH TLS-PORT PLAIN-PORT it takes a door and servers that are there
// already: the door lists localhost with both ports, the servers speak as door-process.ts does.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { tempDir } from '../support/temp-dir.ts'
import { counts } from './counts.ts'

const megabytes = 100
const atOnce = 200
const words = process.argv.slice(2)
const given = words.indexOf('--door')
const [doorPath, givenTls, givenPlain] = given < 0 ? [] : words.slice(given + 1)
const { rounds } = counts({ rounds: 500 }, given < 0 ? words : words.slice(0, given))

const start = (...args: readonly string[]): ChildProcess =>
  fork(fileURLToPath(new URL('door-process.ts', import.meta.url)), args)
const ask = async (child: ChildProcess): Promise<{ rss: number; cpuMs: number }> => {
  child.send('how much')
  const [[rss, cpu]] = (await once(child, 'message')) as [[number, NodeJS.CpuUsage]]
  return { rss, cpuMs: (cpu.user + cpu.system) / 1000 }
}

type Way = (port: number) => Socket
const direct: Way = (port) => connect({ port, host: '127.0.0.1', noDelay: true })
const through =
  (path: string): Way =>
  (port) => {
    const socket = connect(path)
    socket.write(`SP1 connect localhost ${port}\n`)
    return socket
  }

/** A TLS handshake and one byte there and back, ms. */
async function handshake(way: Way, port: number): Promise<number> {
  const began = performance.now()
  const socket = connectTls({ socket: way(port), servername: 'localhost', rejectUnauthorized: false })
  socket.write('x')
  await once(socket, 'data')
  const ms = performance.now() - began
  socket.destroy()
  return ms
}

/** MiB a second of one download. */
async function download(way: Way, port: number): Promise<number> {
  const began = performance.now()
  const socket = way(port)
  socket.write(`${megabytes}`)
  let bytes = 0
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
  await once(socket, 'end')
  socket.destroy()
  if (bytes !== megabytes * 2 ** 20) throw new Error(`got ${bytes} bytes`)
  return megabytes / ((performance.now() - began) / 1000)
}

/** Until the last of many handshakes at once is done, ms. */
async function crowd(way: Way, port: number): Promise<number> {
  const began = performance.now()
  await Promise.all(Array.from({ length: atOnce }, () => handshake(way, port)))
  return performance.now() - began
}

const quantile = (them: readonly number[], q: number): number =>
  [...them].sort((a, b) => a - b)[Math.min(them.length - 1, Math.floor(q * them.length))] ?? Number.NaN
const report = (what: string, unit: string, them: readonly number[]): void => {
  const [low, median, high] = [0.25, 0.5, 0.75].map((q) => quantile(them, q).toFixed(2))
  process.stdout.write(
    `${what.padEnd(34)} ${median} ${unit} (quartiles ${low} to ${high}, ${them.length} runs)\n`,
  )
}

/** Both ways by turns, so that whatever else the machine does meets both. */
async function compare(
  what: string,
  unit: string,
  runs: number,
  measure: (way: Way) => Promise<number>,
  ways: readonly [Way, Way],
): Promise<void> {
  const found: [number[], number[]] = [[], []]
  for (let i = 0; i < runs; i++)
    for (const at of i % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const))
      found[at].push(await measure(ways[at]))
  report(`${what}, direct`, unit, found[0])
  report(`${what}, door`, unit, found[1])
  const [one, other] = [quantile(found[0], 0.5), quantile(found[1], 0.5)]
  process.stdout.write(
    `${' '.repeat(34)} ${(other - one).toFixed(2)} ${unit} added, ${(other / one).toFixed(2)} times\n`,
  )
}

const dir = await tempDir()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void Promise.resolve(dir[Symbol.asyncDispose]()).finally(() => process.exit(1)))
const server = start('server')
const [ends] = (await once(server, 'message')) as [[AddressInfo, AddressInfo]]
const tls = givenTls === undefined ? ends[0].port : Number(givenTls)
const plain = givenPlain === undefined ? ends[1].port : Number(givenPlain)
const path = doorPath ?? join(dir.path, 'i', 'door')
const door = doorPath === undefined ? start('door', path, `${tls}`, `${plain}`) : null
if (door !== null) await once(door, 'message')
const ways = [direct, through(path)] as const

for (let i = 0; i < 50; i++) for (const way of ways) await handshake(way, tls)
const before = door === null ? null : await ask(door)
await compare('new TLS connection', 'ms', rounds, (way) => handshake(way, tls), ways)
const after = door === null ? null : await ask(door)
if (before !== null && after !== null)
  process.stdout.write(
    `door, CPU for each connection        ${((after.cpuMs - before.cpuMs) / rounds).toFixed(2)} ms\n`,
  )
await compare(`${megabytes} MiB down`, 'MiB/s', 7, (way) => download(way, plain), ways)
await compare(`${atOnce} TLS connections at once`, 'ms', 7, (way) => crowd(way, tls), ways)
const last = door === null ? null : await ask(door)
if (before !== null && last !== null) {
  const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
  process.stdout.write(
    `door's process, RSS                ${mib(before.rss)} MiB before, ${mib(last.rss)} MiB after\n`,
  )
}
door?.disconnect()
server.disconnect()
await dir[Symbol.asyncDispose]()
process.exit()
