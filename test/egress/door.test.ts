import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { access, readdir, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { openDoor } from '../../src/egress/door.ts'
import { Slots } from '../../src/egress/slots.ts'
import type { InstanceId } from '../../src/lib/ids.ts'
import { certificate, certificateKey } from '../support/certificate.ts'
import { encryptedHello, helloMessage, realHello, records, serverName } from '../support/client-hello.ts'
import { collect, echo, testDoor, upstream, usualLimits } from '../support/egress-door.ts'
import { eventually } from '../support/eventually.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nodeAs, nobody } from '../support/user.ts'

const here = { 'allowed.com': ['127.0.0.1'] }

test('a TLS connection to a listed name is end to end, and told with its bytes', async () => {
  const server = createTlsServer({ cert: certificate, key: certificateKey }, (socket) => socket.pipe(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await using it = await testDoor({ grants: [{ port }], names: here })
  const socket = connectTls({
    socket: it.says(`SP1 connect allowed.com ${port}\n`),
    servername: 'allowed.com',
    ca: certificate,
  })
  await once(socket, 'secureConnect')
  expect(socket.authorized).toBe(true)
  socket.end('hello')
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toBe('hello')
  const opened = await it.told('opened')
  expect(opened).toMatchObject({
    host: 'allowed.com',
    port,
    address: '127.0.0.1',
    verdict: 'connected',
    reason: null,
  })
  const closed = await it.told('closed')
  expect(closed).toMatchObject({ connection: opened.connection, verdict: 'ended', reason: null })
  expect(closed.bytesUp).toBeGreaterThan(300)
  expect(closed.bytesDown).toBeGreaterThan(300)
  expect(it.door.connections()).toEqual([])
  server.close()
})

test('what follows the opening line is not dialled for unless it is a hello for that name', async () => {
  await using server = await upstream(echo)
  await using it = await testDoor({
    grants: [{ port: server.port }],
    names: here,
    limits: { handshakeMs: 300 },
  })
  const line = Buffer.from(`SP1 connect allowed.com ${server.port}\n`)
  const after = async (bytes: Uint8Array | string): Promise<string | null> =>
    (await it.refuses(Buffer.concat([line, Buffer.from(bytes as Uint8Array)]))).reason
  expect(await after(Buffer.from('SSH-2.0-x\r\n'))).toBe('no-client-hello')
  expect(await after(Buffer.from('GET / HTTP/1.1\r\nHost: allowed.com\r\n\r\n'))).toBe('no-client-hello')
  expect(await after(await realHello('evil.net'))).toBe('sni-mismatch')
  expect(await after(await realHello('allowed.com.evil.net'))).toBe('sni-mismatch')
  expect(await after(await realHello())).toBe('sni-missing')
  expect(await after(records(helloMessage([serverName('public.example'), encryptedHello()])))).toBe(
    'sni-mismatch',
  )
  expect(await after((await realHello('allowed.com')).subarray(0, 50))).toBe('hello-timeout')
  expect(await after('')).toBe('hello-timeout')
  expect(server.accepted()).toBe(0)
})

test('a hello that comes byte by byte, or in records of one byte, arrives whole', async () => {
  await using server = await upstream(echo)
  await using it = await testDoor({ grants: [{ port: server.port }], names: here })
  const hello = await realHello('allowed.com')
  const socket = it.says(`SP1 connect allowed.com ${server.port}\n`)
  for (const byte of hello) {
    socket.write(Uint8Array.of(byte))
    await new Promise(setImmediate)
  }
  socket.end()
  expect(await collect(socket)).toBe(hello.toString('latin1'))
})

test('a connection opens with one line, short and soon; the door says nothing to any other', async () => {
  await using it = await testDoor({ grants: [{}], names: here })
  const lines = [
    'GET / HTTP/1.1\r\n\r\n',
    'SP2 proxy\n',
    'SP1 proxy \n',
    'SP1 proxy\r\n',
    'SP1 connect allowed.com\n',
    'SP1 connect allowed.com 443 x\n',
    'SP1  connect allowed.com 443\n',
    'SP1 connect  443\n',
    'sp1 proxy\n',
    '\n',
    `SP1 connect ${'a'.repeat(300)} 443\n`,
    'SP1 '.padEnd(300, 'x'),
    Buffer.alloc(70_000, 65),
  ]
  for (const line of lines)
    expect(await it.refuses(line)).toEqual({ answer: '', reason: 'bad-opening', verdict: 'refused' })
  const silent = it.says('SP1 conn')
  expect(await collect(silent)).toBe('')
  expect((await it.told('refused', lines.length + 1)).reason).toBe('bad-opening')
})

test('a port on which no TLS is spoken carries bytes both ways, each half closed on its own', async () => {
  await using server = await upstream((socket) => {
    socket.write('220 ready\r\n') // speaks first
    socket.once('end', () => socket.end('after your end'))
    socket.resume()
  })
  await using it = await testDoor({ grants: [{ port: server.port, tls: false }], names: here })
  const socket = it.says(`SP1 connect allowed.com ${server.port}\n`)
  const [greeting] = (await once(socket, 'data')) as [Buffer]
  expect(greeting.toString()).toBe('220 ready\r\n')
  socket.end('x')
  expect(await collect(socket)).toBe('after your end')
  expect(await it.told('closed')).toMatchObject({ verdict: 'ended', bytesUp: 1, bytesDown: 25 })
})

test('the upstream’s end reaches the sandbox while it still sends', async () => {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  await using server = await upstream((socket) => {
    socket.end('bye')
    void collect(socket).then(resolve, reject)
  })
  await using it = await testDoor({ grants: [{ port: server.port, tls: false }], names: here })
  const socket = it.says(`SP1 connect allowed.com ${server.port}\n`)
  socket.resume()
  await once(socket, 'end')
  socket.end('last words')
  expect(await promise).toBe('last words')
})

test('a reader that stops holds up the writer, and loses nothing', async () => {
  const total = 32 << 20
  let sent = 0
  await using server = await upstream((socket) => {
    const chunk = Buffer.alloc(65_536, 7)
    const more = (): void => {
      while (sent < total) {
        sent += chunk.length
        if (!socket.write(chunk)) return void socket.once('drain', more)
      }
      socket.end()
    }
    more()
  })
  await using it = await testDoor({ grants: [{ port: server.port, tls: false }], names: here })
  const socket = it.says(`SP1 connect allowed.com ${server.port}\n`)
  await it.told('opened')
  // Stands still once every buffer between the two is full
  let last = -1
  await eventually(async () => {
    const before = last
    last = sent
    await new Promise((resolve) => setTimeout(resolve, 100))
    return sent > 0 && before === sent
  })
  expect(sent).toBeLessThan(total / 2)
  expect(it.door.connections()).toHaveLength(1)
  let received = 0
  socket.on('data', (chunk: Buffer) => (received += chunk.length)).once('end', () => socket.end())
  await once(socket, 'close')
  expect(received).toBe(total)
})

test('a connection is cut at its byte budget, each way', async () => {
  await using server = await upstream(echo)
  await using it = await testDoor({
    grants: [{ port: server.port, tls: false }],
    names: here,
    limits: { bytesUp: 1000, bytesDown: 500 },
  })
  const line = `SP1 connect allowed.com ${server.port}\n`
  await it.answers(line + 'x'.repeat(1001))
  expect(await it.told('closed')).toMatchObject({ verdict: 'cut', reason: 'bytes-up' })
  await it.answers(line + 'x'.repeat(501))
  expect(await it.told('closed', 2)).toMatchObject({ verdict: 'cut', reason: 'bytes-down' })
})

test('a connection is cut when it is silent for too long, and when it lives for too long', async () => {
  await using server = await upstream(echo)
  const grants = [{ port: server.port, tls: false }]
  const line = `SP1 connect allowed.com ${server.port}\n`
  await using idle = await testDoor({ grants, names: here, limits: { idleMs: 100 } })
  await idle.answers(line)
  expect(await idle.told('closed')).toMatchObject({ verdict: 'cut', reason: 'idle' })
  await using old = await testDoor({ grants, names: here, limits: { totalMs: 200 } })
  const socket = old.says(line)
  socket.on('data', (chunk: Buffer) => void socket.write(chunk)).write('x')
  await collect(socket)
  expect(await old.told('closed')).toMatchObject({ verdict: 'cut', reason: 'too-long' })
})

test('a sandbox has so many connections at once, and a daemon', async () => {
  await using server = await upstream(echo)
  const grants = [{ port: server.port, tls: false }]
  const line = `SP1 connect allowed.com ${server.port}\n`
  const slots = new Slots(3)
  await using one = await testDoor({ grants, names: here, limits: { connections: 2 }, slots })
  await using other = await testDoor({ grants, names: here, slots })
  const first = one.says(line)
  one.says(line)
  await one.told('opened', 2)
  expect((await one.refuses(line)).reason).toBe('too-many')
  other.says(line)
  await other.told('opened')
  expect((await other.refuses(line)).reason).toBe('too-many')
  first.destroy()
  await one.told('closed')
  one.says(line)
  await one.told('opened', 3)
})

test('shut doors refuse before a name is looked up, and again before anything is dialled', async () => {
  await using server = await upstream(echo)
  let asked = 0
  await using it = await testDoor({
    grants: [{ port: server.port }],
    names: here,
    mayConnect: () => (++asked === 2 ? { open: true } : { open: false, reason: 'doors-shut' }),
  })
  const line = `SP1 connect allowed.com ${server.port}\n`
  expect(await it.refuses(line)).toMatchObject({ reason: 'doors-shut', verdict: 'refused' })
  const hello = Buffer.concat([Buffer.from(line), await realHello('allowed.com')])
  expect(await it.refuses(hello)).toMatchObject({ reason: 'doors-shut', verdict: 'refused' })
  expect(asked).toBe(3)
  expect(server.accepted()).toBe(0)
})

test('an address that must not be dialled is refused by its range, and the rest of an answer is dialled', async () => {
  await using server = await upstream(echo)
  const { port } = server
  const names = {
    'inner.com': ['10.0.0.5', '127.0.0.1'],
    'allowed.com': ['169.254.169.254', '::ffff:127.0.0.1', '127.0.0.1'],
  }
  await using it = await testDoor({
    grants: [
      { port, tls: false },
      { host: 'inner.com', port, tls: false, private: false },
    ],
    names,
  })
  expect(await it.refuses(`SP1 connect inner.com ${port}\n`)).toMatchObject({
    reason: 'address-refused:private',
  })
  it.says(`SP1 connect allowed.com ${port}\n`)
  expect(await it.told('opened')).toMatchObject({ address: '127.0.0.1' })
})

test('nobody listening is a failure of the network, told with its word', async () => {
  await using server = await upstream(echo)
  const { port } = server
  await server[Symbol.asyncDispose]()
  await using it = await testDoor({
    grants: [{ port, tls: false }],
    names: { 'allowed.com': ['127.0.0.2', '127.0.0.1'] },
  })
  expect(await it.refuses(`SP1 connect allowed.com ${port}\n`)).toMatchObject({
    reason: 'connect-failed:econnrefused',
    verdict: 'failed',
  })
})

test('connections are cut by choice, at once and at every stage', async () => {
  await using server = await upstream(echo)
  await using it = await testDoor({
    grants: [
      { port: server.port, tls: false },
      { host: 'slow.com', port: server.port },
    ],
    names: { ...here, 'slow.com': ['127.0.0.1'] },
  })
  const open = it.says(`SP1 connect allowed.com ${server.port}\n`)
  const waiting = it.says(`SP1 connect slow.com ${server.port}\n`)
  await it.told('opened')
  await eventually(() => it.door.connections().length === 2)
  it.door.cut(({ host }) => host === 'slow.com', 'lease-ended')
  expect(await it.told('refused')).toMatchObject({ host: 'slow.com', verdict: 'cut', reason: 'lease-ended' })
  expect(await collect(waiting)).toBe('')
  expect(it.door.connections().map(({ host }) => host)).toEqual(['allowed.com'])
  it.door.cut(() => true, 'lease-ended')
  expect(await collect(open)).toBe('')
  expect(await it.told('closed')).toMatchObject({ verdict: 'cut', reason: 'lease-ended' })
})

test('the socket is its owner’s alone, and disposing leaves neither socket nor folder nor connection', async () => {
  await using server = await upstream(echo)
  const it = await testDoor({ grants: [{ port: server.port, tls: false }], names: here })
  expect((await stat(it.door.path)).mode & 0o777).toBe(0o600)
  expect((await stat(dirname(it.door.path))).mode & 0o777).toBe(0o700)
  const socket = it.says(`SP1 connect allowed.com ${server.port}\n`)
  await it.told('opened')
  await it.door[Symbol.asyncDispose]()
  await collect(socket)
  expect(it.events.at(-1)).toMatchObject({ kind: 'closed', verdict: 'cut', reason: 'door-closed' })
  await expect(access(dirname(it.door.path))).rejects.toThrow('ENOENT')
  await it[Symbol.asyncDispose]()
})

test('where the sandbox has a uid of its own, that uid connects and no other', async () => {
  if (!isRoot) return // one's own uid is the only one that an ordinary user can give a socket to
  await using it = await testDoor({ grants: [{}], names: here, uid: nobody })
  const { mode, uid } = await stat(it.door.path)
  expect([mode & 0o777, uid]).toEqual([0o600, nobody])
  expect((await stat(dirname(it.door.path))).mode & 0o777).toBe(0o711)
  const code = `import('node:net').then(({ connect }) => connect(${JSON.stringify(it.door.path)})
    .on('error', (e) => console.log(e.code)).on('connect', function () { console.log('in'); this.destroy() }))`
  await import('node:fs/promises').then(({ chmod }) => chmod(dirname(dirname(it.door.path)), 0o711))
  expect((await nodeAs(nobody, code)).trim()).toBe('in')
  expect((await nodeAs(nobody - 1, code)).trim()).toBe('EACCES')
})

test('a door that cannot listen leaves no folder', async () => {
  await using dir = await tempDir()
  const policy = { server: 'it', instance: 'i-1' as InstanceId, grants: [], limits: usualLimits }
  const options = {
    watch: { event: () => undefined, mayConnect: () => ({ open: true }) as const },
    interceptor: null,
    screen: null,
    path: `${dir.path}/i/.`, // nothing can listen where a folder is
    uid: process.geteuid?.() ?? 0,
  }
  await expect(openDoor(policy, options)).rejects.toThrow('listen E')
  expect(await readdir(dir.path)).toEqual([])
})

test.runIf(isRoot).each([
  ['folder', 1],
  ['socket', 2],
])('a door for whose %s there is no room is a shortage, and leaves nothing', async (_, inodes) => {
  await using dir = await tempDir()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `nr_inodes=${inodes}`, 'tmpfs', dir.path])
  try {
    const policy = { server: 'web', instance: 'i' as InstanceId, grants: [], limits: usualLimits }
    const options = {
      watch: { event: () => undefined, mayConnect: () => ({ open: true }) as const },
      interceptor: null,
      screen: null,
      path: `${dir.path}/i/door`,
      uid: process.geteuid?.() ?? 0,
    }
    await expect(openDoor(policy, options)).rejects.toMatchObject({
      code: 'ERR_SHORTAGE',
      message: expect.stringMatching(/^the way out of web could not be opened: .*ENOSPC/),
    })
    expect(await readdir(dir.path)).toEqual([])
  } finally {
    execFileSync('umount', [dir.path])
  }
})

test('the folder of a door was never there before, and its grants are canonical', async () => {
  await using it = await testDoor({ grants: [{}], names: here })
  await expect(testDoor({ grants: [{ host: 'Allowed.com' }] })).rejects.toMatchObject({
    code: 'ERR_CONFIG_INVALID',
  })
  await expect(testDoor({ grants: [{ host: '*.com' }] })).rejects.toMatchObject({
    code: 'ERR_CONFIG_INVALID',
  })
  expect(connect(it.door.path).destroy().destroyed).toBe(true)
})

test('what was refused inside is told, escaped, counted and once for a sandbox’s life', async () => {
  await using it = await testDoor({ grants: [{}], names: here })
  const socket = it.says(
    'SP1 notices\nname evil.net 1\nname a\\x20b\x1b[31m 28\ntcp 10.0.0.1 22\nudp ::1 443\nicmp 1.1.1.1\nother 47\ndropped 12\nfull api.test 443\npool n.wild.test 1\nsocket 40 1 0\nsocket 2 1 262\nsocket 10 3 58\nsocket 2 2 1\nsocket 99 1 4294967295\nsocket 10 5 33\nlocal /run/a\\x20b/door\nlocal -\n',
  )
  await it.told('refused', 17)
  expect(it.events.map(({ host, port, reason, count }) => [host, port, reason, count])).toEqual([
    ['evil.net', null, 'name-not-listed', 1],
    ['a\\x20b\\x1b\\x5b31m', null, 'name-not-listed', 1],
    ['10.0.0.1', 22, 'no-door', 1],
    ['::1', 443, 'udp', 1],
    ['1.1.1.1', null, 'icmp', 1],
    ['', null, 'protocol:47', 1],
    ['', null, 'not-told', 12],
    ['api.test', 443, 'too-many', 1],
    ['n.wild.test', null, 'pool-exhausted', 1],
    ['', null, 'socket:vsock', 1],
    ['', null, 'socket:mptcp', 1],
    ['', null, 'socket:raw', 1],
    ['', null, 'socket:ping', 1],
    ['', null, 'socket:family-99', 1],
    ['', null, 'socket:protocol-33', 1],
    ['/run/a\\x20b/door', null, 'local', 1],
    ['-', null, 'local', 1],
  ])
  expect((await it.refuses('SP1 notices\n')).reason).toBe('second-notices')
  socket.write('tcp localhost 22\n')
  await collect(socket)
  expect(it.events.at(-1)).toMatchObject({ reason: 'bad-notice' })
  expect((await it.refuses('SP1 notices\n')).reason).toBe('second-notices')
})

test('a flood of refusals is counted: no record for each, none forgotten', async () => {
  await using it = await testDoor({ grants: [{}], names: here })
  const total = 20_000
  it.says('SP1 notices\n').write('name evil.net 1\n'.repeat(total))
  await eventually(() => it.events.reduce((sum, { count }) => sum + count, 0) === total)
  expect(it.events.length).toBeLessThan(300)
})

test('a door whose folder holds what is not ours closes all the same', async () => {
  await using it = await testDoor({ grants: [{}], names: here })
  await writeFile(`${dirname(it.door.path)}/else`, '')
  await it.door[Symbol.asyncDispose]()
  expect(await readdir(dirname(it.door.path))).toEqual(['else'])
})
