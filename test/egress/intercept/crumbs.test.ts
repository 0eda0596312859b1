// Bodies in chunks and messages in frames of one letter, each an object of its own to who reads them: they take little of the daemon.
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { intercepted, until } from '../../support/intercepted.ts'
import { living } from '../../support/collect.ts'

const crumbs = Buffer.from('1\r\nq\r\n'.repeat(5000))
const pieceBytes = 30_000
const connections = 4
const mebi = 1_048_576
/** More than a message of node:http held by itself, which is 65536 such chunks */
const enough = 600_000

const livingMebi = (): number => living() / mebi

/** Sends them, over and over, for as long as they are taken. */
async function send(to: Socket, bytes: Buffer = crumbs): Promise<void> {
  to.on('error', () => to.destroy())
  const closed = new Promise((resolve) => to.once('close', resolve))
  for (let at = 0; !to.destroyed; at = at + pieceBytes < bytes.length ? at + pieceBytes : 0)
    if (!to.write(bytes.subarray(at, at + pieceBytes)))
      await Promise.race([new Promise((resolve) => to.once('drain', resolve)), closed])
}

/** The most that lived for each connection, MiB, until this much went into each socket, or nothing more does. */
async function mostWhile(senders: () => readonly Socket[], before: number): Promise<number> {
  let [most, sent, same] = [0, 0, 0]
  await eventually(() => {
    const now = senders().reduce((all, it) => all + it.bytesWritten, 0)
    same = now === sent && now > 0 ? same + 1 : 0
    sent = now
    const isOver = same > 10 || sent > connections * enough
    // What lives takes long to tell in a process of many test files, and is told again only once more of it may live
    if (same === 0 || isOver) most = Math.max(most, livingMebi() - before)
    return isOver
  })
  return most / connections
}

/** The most that lives for each of some connections whose clients ask, and never read; MiB. */
async function mostUnread(
  at: Awaited<ReturnType<typeof intercepted>>,
  hosts: readonly Socket[],
  fields: readonly string[],
): Promise<number> {
  const clients = await Promise.all(Array.from({ length: connections }, () => at.raw()))
  const before = livingMebi()
  const head = [
    'GET / HTTP/1.1',
    `Host: ${at.authority}`,
    `Authorization: Bearer ${at.placeholder}`,
    ...fields,
  ]
  for (const client of clients) client.pause().write(`${head.join('\r\n')}\r\n\r\n`)
  const most = await mostWhile(() => hosts, before)
  for (const client of clients) client.destroy()
  return most
}

/** Packed, and no smaller for it: what is unpacked of it is soon more than anybody takes. */
const packed = (): Buffer =>
  Buffer.concat(
    [...gzipSync(randomBytes(1_500_000))].map((byte) => Buffer.from([0x31, 13, 10, byte, 13, 10])),
  )

test.each(['identity', 'gzip'])('of an answer that nobody takes little is held: %s', async (coding) => {
  const hosts: Socket[] = []
  const bytes = coding === 'gzip' ? packed() : crumbs
  await using at = await intercepted({
    raw: (host) =>
      host.once('data', () => {
        hosts.push(host)
        host.write(`HTTP/1.1 200 OK\r\nContent-Encoding: ${coding}\r\nTransfer-Encoding: chunked\r\n\r\n`)
        void send(host, bytes)
      }),
  })
  using _lease = await at.lease()
  expect(await mostUnread(at, hosts, [])).toBeLessThan(5)
})

test('of a request that the host does not take little is held', async () => {
  await using at = await intercepted({ raw: (host) => host.once('data', () => host.pause()) })
  using _lease = await at.lease()
  const clients = await Promise.all(Array.from({ length: connections }, () => at.raw()))
  const before = livingMebi()
  for (const client of clients) {
    client.write(
      `POST / HTTP/1.1\r\nHost: ${at.authority}\r\nAuthorization: Bearer ${at.placeholder}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    )
    void send(client)
  }
  expect(await mostWhile(() => clients, before)).toBeLessThan(5)
  for (const client of clients) client.destroy()
})

test('of messages of a websocket that nobody takes little is held', async () => {
  const hosts: Socket[] = []
  // The pair of RFC 6455, section 1.3
  const [key, accept] = ['dGhlIHNhbXBsZSBub25jZQ==', 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=']
  await using at = await intercepted({
    injection: { websocket: true },
    raw: (host) =>
      host.once('data', () => {
        hosts.push(host)
        host.write(
          `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
        )
        void send(host, Buffer.from('\u0081\u0001q'.repeat(5000), 'latin1'))
      }),
  })
  using _lease = await at.lease()
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
  ]
  expect(await mostUnread(at, hosts, upgrade)).toBeLessThan(2)
})

test('what came together goes on together, and all of it', async () => {
  const letters = 40_000
  await using at = await intercepted({
    raw: (host) =>
      host.once('data', () =>
        host.end(
          `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nq\r\n'.repeat(letters)}0\r\n\r\n`,
        ),
      ),
  })
  using _lease = await at.lease()
  const client = await at.raw()
  client.write(`GET / HTTP/1.1\r\nHost: ${at.authority}\r\nAuthorization: Bearer ${at.placeholder}\r\n\r\n`)
  const [, body = ''] = (await until(client, '0\r\n\r\n')).split(/(?<=\r\n\r\n)(.*)/s)
  const sizes = [...body.matchAll(/^([0-9a-f]+)\r$/gm)].map(([, size = '']) => Number.parseInt(size, 16))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(letters)
  expect(sizes.length).toBeLessThan(letters / 50)
  client.destroy()
})
