// A small real name server, over UDP and TCP, whose answers a test decides query by query.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'

/** One record of an answer: an address, or the name that a CNAME leads to. */
export interface Answer {
  readonly type: 'A' | 'AAAA' | 'CNAME'
  readonly data: string
  /** The queried name where left out */
  readonly name?: string
}

/** What a query gets: records, a code without any, or nothing at all. */
export type Reply = readonly Answer[] | 'NXDOMAIN' | 'SERVFAIL' | 'silence' | 'truncated'

/** A query as it came. */
export interface Query {
  readonly name: string
  readonly type: string
  readonly over: 'udp' | 'tcp'
}

const types: Readonly<Record<string, number>> = { A: 1, CNAME: 5, AAAA: 28 }

/** Serves 127.0.0.1:53, which takes a network of one's own. Records have a TTL of 0; returns the queries so far. */
export async function serveNames(reply: (query: Query) => Reply | Promise<Reply>): Promise<readonly Query[]> {
  const queries: Query[] = []
  const answer = async (message: Buffer, over: Query['over']): Promise<Buffer | null> => {
    const query = { ...questionOf(message), over }
    queries.push(query)
    return encode(message, query, await reply(query))
  }
  const udp = createSocket('udp4').on('message', (message, { port, address }) => {
    void answer(message, 'udp').then((bytes) => bytes !== null && udp.send(bytes, port, address))
  })
  udp.bind(53, '127.0.0.1')
  const tcp = createServer((socket: Socket) => {
    let held = Buffer.alloc(0)
    socket
      .on('error', () => undefined)
      .on('data', (chunk: Buffer) => {
        held = Buffer.concat([held, chunk])
        if (held.length < 2 || held.length < 2 + held.readUInt16BE(0)) return
        const message = held.subarray(2, 2 + held.readUInt16BE(0))
        held = Buffer.alloc(0)
        void answer(message, 'tcp').then(
          (bytes) => bytes !== null && socket.write(Buffer.concat([number(bytes.length), bytes])),
        )
      })
  }).listen(53, '127.0.0.1')
  await Promise.all([once(udp, 'listening'), once(tcp, 'listening')])
  return queries
}

const number = (value: number): Buffer => Buffer.from([value >> 8, value & 255])

function questionOf(message: Buffer): { name: string; type: string } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const code = message.readUInt16BE(at + 1)
  const type = Object.entries(types).find(([, it]) => it === code)?.[0] ?? `${code}`
  return { name: labels.join('.'), type }
}

const encodeName = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split('.')
      .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')])),
    Buffer.from([0]),
  ])

function encode(message: Buffer, { name, type }: Query, reply: Reply): Buffer | null {
  if (reply === 'silence') return null
  const records = Array.isArray(reply) ? (reply as readonly Answer[]) : []
  const code = reply === 'NXDOMAIN' ? 3 : reply === 'SERVFAIL' ? 2 : 0
  const flags = 0x8180 | code | (reply === 'truncated' ? 0x200 : 0)
  const head = Buffer.concat([message.subarray(0, 2), ...[flags, 1, records.length, 0, 0].map(number)])
  const question = Buffer.concat([encodeName(name), number(types[type] ?? Number(type)), number(1)])
  const body = records.map((record) => {
    const data = record.type === 'CNAME' ? encodeName(record.data) : addressBytes(record.data)
    const kind = number(types[record.type] ?? 0)
    return Buffer.concat([
      encodeName(record.name ?? name),
      kind,
      number(1),
      Buffer.alloc(4),
      number(data.length),
      data,
    ])
  })
  return Buffer.concat([head, question, ...body])
}

/** IPv6 is written with one `::` at most, and no IPv4 in it. */
function addressBytes(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number))
  const [left = '', right = ''] = address.split('::')
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((it) => Number.parseInt(it, 16))
  const [before, after] = [groups(left), groups(right)]
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0)
  return Buffer.concat([...before, ...zeros, ...after].map(number))
}
