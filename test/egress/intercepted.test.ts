import { expect, test } from 'vitest'
import type { Interceptor } from '../../src/schema/egress.ts'
import { realHello } from '../support/client-hello.ts'
import { collect, echo, testDoor, upstream } from '../support/egress-door.ts'

const here = { 'allowed.com': ['127.0.0.1'], 'inner.com': ['10.0.0.1'] }

/** Carries bytes to what it dials, and says that it swapped. */
const carrying: Interceptor = {
  intercepts: () => true,
  serve: async (client, _target, dial, log) => {
    const socket = await dial(AbortSignal.timeout(2000)).catch(() => null)
    if (socket === null) return void client.destroy()
    log.swapped('github')
    client.pipe(socket)
    socket.pipe(client)
    await new Promise((resolve) => client.once('close', resolve))
  },
}

test('an intercepted connection is handed over with its hello, and told with what it carried', async () => {
  await using server = await upstream(echo)
  const { port } = server
  await using it = await testDoor({ grants: [{ port }], names: here, interceptor: carrying })
  const hello = await realHello('allowed.com')
  const socket = it.says(Buffer.concat([Buffer.from(`SP1 connect allowed.com ${port}\n`), hello]))
  socket.end()
  expect(await collect(socket)).toBe(hello.toString('latin1'))
  expect(await it.told('opened')).toMatchObject({ address: '127.0.0.1' })
  expect(await it.told('closed')).toMatchObject({
    swapped: ['github'],
    bytesUp: hello.length,
    bytesDown: hello.length,
  })
})

test('it is judged like any other: by hello, by address at each dial, and by the watch', async () => {
  await using server = await upstream(echo)
  const { port } = server
  const grants = [{ port }, { host: 'inner.com', port, private: false }]
  await using it = await testDoor({ grants, names: here, interceptor: carrying })
  const line = (host: string): Buffer => Buffer.from(`SP1 connect ${host} ${port}\n`)
  const refused = async (host: string, sni: string): Promise<string | null> =>
    (await it.refuses(Buffer.concat([line(host), await realHello(sni)]))).reason
  expect(await refused('allowed.com', 'evil.net')).toBe('sni-mismatch')
  expect(await refused('inner.com', 'inner.com')).toBe('address-refused:private')
  let asked = 0
  await using shutting = await testDoor({
    grants,
    names: here,
    interceptor: carrying,
    mayConnect: () => (++asked === 1 ? { open: true } : { open: false, reason: 'doors-shut' }),
  })
  const opening = Buffer.concat([line('allowed.com'), await realHello('allowed.com')])
  expect(await shutting.refuses(opening)).toMatchObject({ reason: 'doors-shut' })
  expect(server.accepted()).toBe(0)
})

test('why an interceptor ended a connection is told, and cutting it reaches both of its sides', async () => {
  const refusing: Interceptor = {
    ...carrying,
    serve: async (client, _target, _dial, log) => {
      log.cut('placeholder-dead')
      log.cut('later')
      client.end('no')
    },
  }
  await using it = await testDoor({
    grants: [{ tls: false, port: 7777 }],
    names: here,
    interceptor: refusing,
  })
  expect(await it.refuses('SP1 connect allowed.com 7777\n')).toMatchObject({
    reason: 'placeholder-dead',
    verdict: 'refused',
  })
  let closed = 0
  await using server = await upstream((socket) => void socket.resume().once('end', () => closed++))
  const grants = [{ port: server.port, tls: false }]
  await using other = await testDoor({ grants, names: here, interceptor: carrying })
  const socket = other.says(`SP1 connect allowed.com ${server.port}\n`)
  await other.told('opened')
  other.door.cut(({ swapped }) => swapped.includes('github'), 'lease-ended')
  await collect(socket)
  expect(await other.told('closed')).toMatchObject({
    verdict: 'cut',
    reason: 'lease-ended',
    swapped: ['github'],
  })
  await expect.poll(() => closed).toBe(1)
})

test('it is held to the budgets of bytes, each way', async () => {
  await using server = await upstream(echo)
  const { port } = server
  const cut = async (limits: { readonly bytesUp: number; readonly bytesDown: number }, sent: string) => {
    const grants = [{ port, tls: false }]
    await using it = await testDoor({ grants, names: here, interceptor: carrying, limits })
    const socket = it.says(`SP1 connect allowed.com ${port}\n${sent}`)
    await collect(socket)
    return await it.told('closed')
  }
  const most = 2 ** 20
  expect(await cut({ bytesUp: 100, bytesDown: most }, 'x'.repeat(200))).toMatchObject({
    verdict: 'cut',
    reason: 'bytes-up',
  })
  expect(await cut({ bytesUp: most, bytesDown: 100 }, 'x'.repeat(200))).toMatchObject({
    verdict: 'cut',
    reason: 'bytes-down',
  })
})
