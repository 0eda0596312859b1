// The life of a connection that carries a secret: one upstream of its own, and over with its lease.
import { getEventListeners, once } from 'node:events'
import type { Duplex } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { intercepted, until } from '../../support/intercepted.ts'

type Way = Awaited<ReturnType<typeof intercepted>>
const use = (at: Way, ...more: readonly string[]): string =>
  [
    'GET / HTTP/1.1',
    `Host: ${at.authority}`,
    `Authorization: Bearer ${at.placeholder}`,
    ...more,
    '',
    '',
  ].join('\r\n')
const free = (at: Way): string => `GET / HTTP/1.1\r\nHost: ${at.authority}\r\n\r\n`
const slow = { http: () => undefined }

test('each connection of a client has a connection upstream of its own, used again and again', async () => {
  const ports: (number | undefined)[] = []
  await using at = await intercepted({
    http: (request, response) => {
      ports.push(request.socket.remotePort)
      response.end('<end>')
    },
  })
  using _ = await at.lease()
  const [one, other] = await Promise.all([at.raw(), at.raw()])
  for (const socket of [one, other, one, other]) {
    socket.write(use(at))
    await until(socket, '<end>')
  }
  expect(at.log.dialled).toBe(2)
  expect(ports[0]).toBe(ports[2])
  expect(ports[1]).toBe(ports[3])
  expect(ports[0]).not.toBe(ports[1])
})

describe('when its lease ends', () => {
  test.each<readonly [string, (lease: { end(): void }) => void, number]>([
    ['with the call', (lease) => lease.end(), 20_000],
    ['at its deadline', () => undefined, 400],
  ])(
    '%s, a connection that carried a swap is cut, in the middle of an answer too',
    async (_, end, deadlineMs) => {
      await using at = await intercepted({
        http: (__, response) => void response.writeHead(200, { 'Content-Length': 100 }).write('begun'),
      })
      const lease = await at.lease(deadlineMs)
      const socket = await at.raw()
      socket.write(use(at))
      await until(socket, 'begun')
      end(lease)
      await eventually(() => at.served.size === 0 && at.upstreams.size === 0 && at.clients.size === 0)
      expect(at.log.cut).toEqual(['lease-ended'])
    },
  )

  test('an idle one is cut as well, and one that carried nothing is not', async () => {
    await using at = await intercepted({ http: (_, response) => response.end('<end>') })
    const lease = await at.lease()
    const [carrier, other] = await Promise.all([at.raw(), at.raw()])
    carrier.write(use(at))
    other.write(free(at))
    await Promise.all([until(carrier, '<end>'), until(other, '<end>')])
    lease.end()
    await eventually(() => at.clients.size === 1)
    other.write(free(at))
    expect(await until(other, '<end>')).toContain('200')
    expect(at.log.cut).toEqual(['lease-ended'])
  })

  test('an idle client is told so, and one that leaves its end open has it closed', async () => {
    await using at = await intercepted({ http: (_, response) => response.end('<end>') })
    const lease = await at.lease()
    const socket = await at.raw({ allowHalfOpen: true })
    socket.write(use(at))
    await until(socket, '<end>')
    const failed: unknown[] = []
    socket.on('error', (error) => failed.push(error))
    const told = once(socket.resume(), 'end')
    lease.end()
    await told
    expect(failed).toEqual([])
    await eventually(() => at.upstreams.size === 0)
    await eventually(() => at.clients.size === 0)
  })

  test('while the host is being dialled, the secret is never sent', async () => {
    const had: unknown[] = []
    const { promise: dialling, resolve } = Promise.withResolvers<void>()
    await using at = await intercepted({ http: (request) => had.push(request.headers), dialling })
    const lease = await at.lease()
    const socket = await at.raw()
    socket.write(use(at))
    await eventually(() => at.log.dialled === 1)
    lease.end()
    resolve()
    await eventually(() => at.served.size === 0 && at.upstreams.size === 0)
    expect(had).toEqual([])
  })

  test('a call at the same time keeps what was swapped for both', async () => {
    await using at = await intercepted({ http: (_, response) => response.end('<end>') })
    const [first, second] = [await at.lease(), await at.lease()]
    const socket = await at.raw()
    socket.write(use(at))
    await until(socket, '<end>')
    first.end()
    socket.write(use(at))
    expect(await until(socket, '<end>')).toContain('200')
    second.end()
    await eventually(() => at.clients.size === 0)
    expect(at.log.cut).toEqual(['lease-ended'])
  })
})

test('connections that are over leave nothing with the lease that they carried', async () => {
  await using at = await intercepted({ http: (_, response) => response.end('<end>') })
  using _ = await at.lease()
  const swap = at.secrets.swap.swap(at.placeholder, at.target, { in: 'header', name: 'authorization' })
  if (swap.state === 'blocked') throw new Error(swap.reason)
  const before = getEventListeners(swap.until, 'abort').length
  for (const socket of await Promise.all([at.raw(), at.raw(), at.raw()])) {
    socket.write(use(at))
    await until(socket, '<end>')
    expect(getEventListeners(swap.until, 'abort').length).toBe(before + 1)
    socket.destroy()
    await eventually(() => getEventListeners(swap.until, 'abort').length === before)
  }
})

test('a client that leaves ends the connection upstream', async () => {
  await using at = await intercepted(slow)
  using _ = await at.lease()
  const socket = await at.raw()
  socket.write(use(at))
  await eventually(() => at.upstreams.size === 1)
  socket.destroy()
  await eventually(() => at.served.size === 0 && at.upstreams.size === 0)
})

test('a host that leaves ends the client’s connection', async () => {
  await using at = await intercepted({ http: (_, response) => response.end('<end>') })
  const socket = await at.raw()
  socket.write(free(at))
  await until(socket, '<end>')
  for (const upstream of at.upstreams) upstream.destroy()
  await eventually(() => at.clients.size === 0 && at.served.size === 0)
})

test('a host that answers before it is asked is taken for nobody’s answer', async () => {
  const hosts: Duplex[] = []
  await using at = await intercepted({
    http: (request, response) => {
      hosts.push(request.socket)
      response.end('<end>')
    },
  })
  const socket = await at.raw()
  socket.write(free(at))
  await until(socket, '<end>')
  hosts[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<unasked>')
  await eventually(() => at.clients.size === 0 && at.served.size === 0 && at.upstreams.size === 0)
})

test('a client that reads slowly holds the host back, and not our memory', async () => {
  let sent = 0
  await using at = await intercepted({
    http: (_, response) => {
      const part = Buffer.alloc(1_000_000)
      const more = (): void => {
        let isRoom = true
        for (; isRoom && sent < 200; sent++) isRoom = response.write(part)
        if (sent < 200) response.once('drain', more)
      }
      more()
    },
  })
  const socket = await at.raw()
  socket.pause()
  socket.write(free(at))
  let before = -1
  await eventually(() => {
    const isStill = sent === before && sent > 0
    before = sent
    return isStill && at.upstreams.size === 1
  })
  expect(sent).toBeLessThan(50)
  socket.destroy()
})

describe.each(['100 Continue', '103 Early Hints'])('a host that says %s', (status) => {
  const interim = `HTTP/1.1 ${status}\r\n\r\n`

  test('as often as is passed on comes to its answer', async () => {
    await using at = await intercepted({
      raw: (socket) => {
        const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone'
        socket.once('data', () => socket.write(interim.repeat(16) + answer))
      },
    })
    const client = await at.raw()
    client.write(free(at))
    await until(client, 'done')
    expect(at.log.cut).toEqual([])
  })

  test('without end is left, whether its client reads or not', async () => {
    await using at = await intercepted({
      raw: (socket) => {
        const flood = (): void => {
          if (!socket.destroyed) socket.write(interim.repeat(17), flood)
        }
        socket.once('data', flood)
      },
    })
    const client = await at.raw()
    client.pause()
    client.write(free(at))
    await eventually(() => at.log.cut.length > 0 && at.upstreams.size === 0)
    expect(at.log.cut).toEqual(['answer-interim'])
  })
})
