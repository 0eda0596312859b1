// The parsers under AddressSanitizer and UBSan: hostile bytes from every side, and not one read or write out of place.
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { arch } from 'node:process'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileWatched } from '../../../src/sandbox/seccomp.ts'
import { query } from '../../support/dns.ts'
import { eventually } from '../../support/eventually.ts'
import { frame } from '../../support/init-frames.ts'
import {
  buildInit,
  ids,
  InitProcess,
  initOrders,
  inParallel,
  outcome,
  shell,
} from '../../support/init-sandbox.ts'
import { openTestDoor } from '../../support/sandbox-door.ts'
import { tempDir } from '../../support/temp-dir.ts'

const binary = buildInit('asan')
// 99 is nothing that the binary itself ends with. Leaks are looked for by ptrace, which PID 1 forbids.
const env = { ASAN_OPTIONS: 'exitcode=99:detect_leaks=0', UBSAN_OPTIONS: 'exitcode=99' }

const launcher = (): InitProcess => new InitProcess(binary, ['outer'], { env })
// What holds the sanitizers' libraries, and not all of the host's root, in which mounts of others come and go; the
// rights that init drops are as they always are.
const init = (more: readonly string[] = [], seen: readonly string[] = []): InitProcess => {
  const namespaces = ['--unshare-user', '--unshare-pid', '--uid', '1000', '--gid', '1000', '--as-pid-1']
  const capabilities = ['--cap-drop', 'ALL', '--cap-add', 'CAP_SYS_RESOURCE', '--cap-add', 'CAP_SETPCAP']
  const links = ['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])
  const root = `--ro-bind /usr /usr --dir /tmp --ro-bind ${binary} /init --proc /proc`.split(' ')
  const shown = seen.flatMap((path) => ['--ro-bind', path, path])
  return new InitProcess(
    '/usr/bin/bwrap',
    [...namespaces, ...capabilities, ...more, ...root, ...links, ...shown, '/init', 'init'],
    { env },
  )
}

const clean = async (process: InitProcess, codes: readonly number[], what: string): Promise<void> => {
  const { code, diagnostics } = await outcome(process)
  expect(diagnostics, what).not.toMatch(/Sanitizer|runtime error/)
  expect(codes, `${what}: ${diagnostics}`).toContain(code)
}

const launcherStream = Buffer.concat([
  frame('c', '/nonexistent/cgroup.procs'),
  frame('u', ids.uid, ids.gid),
  frame('b', '/usr/bin/true'),
  frame('a', '--option'),
  frame('d', Buffer.from('data')),
  frame('x'),
])

const initStream = Buffer.concat([
  frame('t', '/usr'),
  ...initOrders(
    shell('exit 0', { env: { A: 'b' }, extra: [frame('l', 4, 0n, 0n), frame('n', 'max_nonsense', 1n)] }),
  ),
])

/** Streams with a few bytes changed, removed or added: near enough to the real ones to get far. */
const mutated = (stream: Buffer, count: number): Buffer[] => {
  const change = fc.record({
    at: fc.nat(stream.length - 1),
    remove: fc.nat(6),
    insert: fc.uint8Array({ maxLength: 6 }),
  })
  return fc
    .sample(fc.array(change, { minLength: 1, maxLength: 3 }), { numRuns: count, seed: 20 })
    .map((changes) =>
      changes.reduce(
        (bytes, { at, remove, insert }) =>
          Buffer.concat([bytes.subarray(0, at), insert, bytes.subarray(at + remove)]),
        stream,
      ),
    )
}

describe('outer', () => {
  it('survives streams that are cut or changed', async () => {
    const cut = [...launcherStream.keys()]
      .filter((at) => at % 4 === 1)
      .map((at) => launcherStream.subarray(0, at))
    await inParallel([...cut, ...mutated(launcherStream, 60)], async (stream) => {
      await using process = launcher()
      process.control.end(stream)
      await clean(process, [125, 0], stream.toString('latin1'))
    })
  })
})

describe('init', () => {
  it('survives streams that are cut or changed', async () => {
    const cut = [...initStream.keys()].filter((at) => at % 9 === 1).map((at) => initStream.subarray(0, at))
    await inParallel([...cut, ...mutated(initStream, 60)], async (stream) => {
      await using process = init()
      process.control.end(stream)
      await clean(process, [125], stream.toString('latin1'))
    })
  })

  it.each([false, true])(
    'runs a server from start to end, and every order in between (one exec: %s)',
    async (oneExec) => {
      await using process = init()
      process.send(...initOrders(shell('trap "exit 7" TERM; echo ready; while :; do :; done', { oneExec })))
      await process.report('S')
      await eventually(() => process.stdout().toString() === 'ready\n')
      process.send(frame('s', 18), frame('T'))
      await clean(process, [7], 'orders')
    },
  )
})

describe('egress', () => {
  const network = [
    '--unshare-net',
    ...['ADMIN', 'RAW', 'BIND_SERVICE'].flatMap((it) => ['--cap-add', `CAP_NET_${it}`]),
  ]
  const orders = (door: string): Buffer[] => [
    frame('D', door, 3128, 4),
    frame('W', compileWatched({ base: 'strict', allow: [], deny: [] }, arch === 'arm64' ? arch : 'x64')),
    frame('N', 7000, 'a.test'),
    frame('N', 80, '*.b.test'),
  ]

  it('survives frames that are cut or changed', async () => {
    const [door = Buffer.alloc(0), filter = Buffer.alloc(0)] = orders('/nonexistent')
    const stream = Buffer.concat([...orders('/nonexistent'), frame('r')])
    // The filter is most of it, and its bytes are all alike: a sandbox for each cut of it is minutes on a busy machine.
    const isInside = (at: number): boolean => at > door.length + 40 && at < door.length + filter.length - 40
    const cut = [...stream.keys()]
      .filter((at) => at % (isInside(at) ? 97 : 5) === 1)
      .map((at) => stream.subarray(0, at))
    expect(cut.length).toBeGreaterThan(30)
    await inParallel([...cut, ...mutated(stream, 60)], async (bytes) => {
      await using process = init(network)
      process.control.end(bytes)
      await clean(process, [125], bytes.toString('latin1'))
    })
  })

  it('serves names, connections and refusals, hostile ones too, and is there at the end', async () => {
    await using door = await openTestDoor(({ socket }) => socket.end('from the door\n'))
    await using folder = await tempDir()
    const queries = join(folder.path, 'queries.json')
    const packets = [
      ...fc
        .sample(fc.uint8Array({ maxLength: 600 }), { numRuns: 30, seed: 3 })
        .map((bytes) => Buffer.from(bytes)),
      ...mutated(query('a.test', 1), 60),
      ...Array.from({ length: 20 }, (_, index) => query(`n${index}.b.test`, 1)),
    ]
    writeFileSync(queries, JSON.stringify(packets.map((bytes) => bytes.toString('hex'))))
    const ask = fileURLToPath(new URL('../../fixtures/servers/ask-resolver.mjs', import.meta.url))
    const script = `
      answers=$('${process.execPath}' '${ask}' tcp '${queries}')
      exec 3<>/dev/tcp/198.18.0.1/7000; cat <&3
      (exec 4<>/dev/tcp/1.2.3.4/5); echo x > /dev/udp/1.2.3.4/6; (exec 4<>/dev/tcp/2001:db8::1/7)
      exec 5<>/dev/tcp/127.0.0.1/3128; cat <&5; read wait; exit 7`
    await using sandbox = init(network, [process.execPath, ask, folder.path, dirname(door.path)])
    const server = { argv: ['/usr/bin/bash', '-c', script], program: '/usr/bin/bash' }
    sandbox.send(...orders(door.path), ...initOrders(server))
    for (const notice of [/^tcp 1\.2\.3\.4 5$/, /^udp 1\.2\.3\.4 6$/, /^name /]) await door.noticed(notice)
    sandbox.stdin.end('go\n')
    await clean(sandbox, [7], 'a session')
    expect(sandbox.stdout().toString()).toBe('from the door\nfrom the door\n')
  })
})

describe('stdio', () => {
  const answer =
    '{"jsonrpc":"2.0","id":1,"error":{"code":1050,"message":"no \\u00e9 \\ud83d x\\n","data":{"code":"ERR_SERVER_NOT_FOUND"}}}'
  const result =
    '{"jsonrpc":"2.0","id":1,"result":{"server":"files","session":"s-1","x":[1,-2.5e3,true,null,{"a":[]}]}}'

  it('survives answers that are cut or changed', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    let next: Uint8Array = Buffer.alloc(0)
    const server = createServer((socket) => {
      socket.on('error', () => {}).resume()
      socket.end(Buffer.concat([next, Buffer.from('\n')]))
    })
    await new Promise<void>((resolve) => server.listen(path, resolve))
    const texts = [answer, result].map((text) => Buffer.from(text))
    const streams = texts.flatMap((text) => [
      ...[...text.keys()].filter((at) => at % 7 === 1).map((at) => text.subarray(0, at)),
      ...mutated(text, 25),
    ])
    for (const stream of streams) {
      next = stream
      const shim = spawn(binary, ['stdio', 'files', '--socket', path], {
        env,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let errors = ''
      shim.stderr.on('data', (text: Buffer) => (errors += text.toString('latin1')))
      const code = await new Promise((resolve) => shim.once('close', resolve))
      expect(errors, stream.toString()).not.toMatch(/Sanitizer|runtime error/)
      expect([1, 2, 5, 6, 7, 8]).toContain(code)
    }
    server.close()
  })
})

describe('guard', () => {
  it('survives lines of any bytes', async () => {
    await using folder = await tempDir()
    const lines = fc
      .sample(fc.uint8Array({ maxLength: 200 }), { numRuns: 200, seed: 7 })
      .map((bytes) => Buffer.from(bytes))
    const guard = spawn(binary, ['guard', folder.path], { env, stdio: ['pipe', 'ignore', 'pipe'] })
    let errors = ''
    guard.stderr.on('data', (text: Buffer) => (errors += text.toString()))
    const paths = ['unlink /', 'cgroup /..', `rmdir /${'x'.repeat(5000)}`].map((text) => Buffer.from(text))
    guard.stdin.end(Buffer.concat([...lines, ...paths].flatMap((line) => [line, Buffer.from('\n')])))
    expect(await new Promise((resolve) => guard.once('close', resolve))).toBe(0)
    expect(errors).toBe('')
  })
})
