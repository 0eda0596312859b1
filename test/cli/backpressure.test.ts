// What is followed and not read: it waits where it comes from, and not in the memory of the verb, which ends when it is told to.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { main } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { type OwnDaemon, ownDaemon } from '../support/own-daemon.ts'
import { tempDir } from '../support/temp-dir.ts'

const words = 'word '.repeat(200)
const at = '2026-01-01T00:00:00.000Z'
/** Far more than all that is held on the way: a pipe, two ends of a socket, 256 of what is told */
const floodBytes = 64 * 1024 ** 2
const onTheWay = 8 * 1024 ** 2

const asked = {
  id: 'a-1',
  principal: '7',
  identity: 'any/tool@1#1',
  summary: words,
  reason: 'rules[0]',
  text: words,
  next: null,
  length: words.length,
  waited_ms: 0,
  deadline_ms: 1000,
  ttl_ms: 1000,
}
const record = {
  seq: 1,
  at,
  daemon: 'd-1',
  segment: 1,
  type: 'call.outcome',
  prev: null,
  hash: null,
  mac: null,
}

test.each([
  ['events', 'events/event', { seq: 1, at, type: 'x', server: null, instance: null, detail: { words } }],
  ['logs any --follow', 'servers/log', { server: 'any', line: words, lost: 0 }],
  ['logs any --follow --json', 'servers/log', { server: 'any', line: words, lost: 0 }],
  ['audit tail --follow', 'audit/record', { ...record, body: { reason: words } }],
  ['approvals --watch', 'approvals/asked', asked],
  ['approvals --watch --json', 'approvals/asked', asked],
])('%s holds back a flood that nobody reads, and ends at the first SIGTERM', async (verb, name, params) => {
  const flood = new Flood(name, params)
  await using daemon = await ownDaemon(({ socket, reply }) => {
    reply({
      result: { subscribed: true, seq: 0, lines: [], dropped: 0, pending: [], records: [], more: false },
    })
    void flood.pour(socket)
  })
  await using follower = await unread(daemon, verb)
  await eventually(() => flood.hasStoodFor(1000) || flood.bytes >= floodBytes)
  expect(flood.bytes).toBeLessThan(onTheWay)
  follower.kill('SIGTERM')
  expect(await follower.ended).toEqual([3, null])
})

/** Notifications, as many as are taken. */
class Flood {
  readonly #line: string
  bytes = 0
  #stoodSince = Infinity

  constructor(method: string, params: object) {
    this.#line = `${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`
  }

  async pour(socket: Socket): Promise<void> {
    while (this.bytes < floodBytes && socket.writable) {
      this.bytes += this.#line.length
      if (socket.write(this.#line)) continue
      this.#stoodSince = performance.now()
      await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
      this.#stoodSince = Infinity
      await delay(0) // the test looks on
    }
  }

  hasStoodFor(ms: number): boolean {
    return performance.now() - this.#stoodSince > ms
  }
}

/** The verb, into a pipe that is open and not read. */
async function unread({ runtimeDir }: OwnDaemon, verb: string) {
  const folder = await tempDir()
  const path = join(folder.path, 'pipe')
  execFileSync('mkfifo', [path])
  const pipe = await open(path, 'r+')
  const child = spawn(process.execPath, [main, ...verb.split(' '), '--runtime', runtimeDir], {
    stdio: ['ignore', pipe.fd, 'ignore'],
    env: { HOME: folder.path },
  })
  const ended = once(child, 'exit')
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      await pipe.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}
