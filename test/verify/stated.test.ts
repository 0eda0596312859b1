// What is stated of connections and of calls, for a real server: bytes that came back, bytes that never left, and who decides.
import { connect, createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { configOf, fixture, place } from '../support/daemon.ts'
import { freePort } from '../support/free-port.ts'

/** Counts what comes, and answers only where it is to. */
const upstream = async (answers: boolean) => {
  const seen = { bytes: 0, connections: 0 }
  const server = createServer((socket) => {
    seen.connections += 1
    socket
      .on('error', () => socket.destroy())
      .on('data', (chunk) => {
        seen.bytes += chunk.length
        if (answers) socket.end('HTTP/1.1 204 No Content\r\n\r\n')
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, seen, [Symbol.asyncDispose]: async () => void server.close() }
}

/** Listens, takes nobody, and has no room for another: whoever dials it waits. */
const full = async () => {
  const listens = `const { parentPort } = require('node:worker_threads')
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`
  const worker = new Worker(listens, { eval: true })
  const [port] = (await once(worker, 'message')) as [number]
  const waiting = [1, 2, 3].map(() => connect(port, '127.0.0.1').on('error', () => undefined))
  await Promise.all(waiting.slice(0, 2).map((socket) => once(socket, 'connect')))
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of waiting) socket.destroy()
      await worker.terminate()
    },
  }
}

test('can connect takes an answer, cannot connect takes that nobody was dialled', async () => {
  await using answering = await upstream(true)
  await using silent = await upstream(false)
  await using apart = await upstream(true)
  await using busy = await full()
  const closed = await freePort()
  const host = 'api.stated.test'
  const grant = (port: number) => ({ host, port, address: '127.0.0.1', private: true, reason: 'r' })
  const egress = [answering.port, silent.port, busy.port, closed].map(grant)
  const rules = [
    { permission: 'mcp:echo:fail', action: 'deny', where: { '/text': 'x' } },
    { permission: 'mcp:echo:error', action: 'allow', where: { '/text': 'x' } },
    { permission: 'mcp:echo:echo', action: 'deny' },
    { permission: 'mcp:*:*', action: 'ask' },
  ]
  await using at = await place(configOf({ echo: fixture('echo', { profile: 'stated', egress }) }, { rules }))
  await mkdir(join(at.folder, 'profiles'))
  const allow = [...egress, grant(apart.port)]
  const profile = {
    version: 1,
    name: 'stated',
    extends: 'node',
    widens: true,
    network: { mode: 'allowlist', allow },
  }
  await writeFile(join(at.folder, 'profiles/stated.yaml'), JSON.stringify(profile), { mode: 0o600 })
  const lines = {
    [`can connect ${host}:${answering.port}`]: 'pass',
    [`cannot connect ${host}:${answering.port}`]: 'fail',
    [`can connect ${host}:${silent.port}`]: 'fail',
    [`cannot connect ${host}:${silent.port}`]: 'fail',
    [`can connect ${host}:${busy.port}`]: 'error',
    [`cannot connect ${host}:${busy.port}`]: 'error',
    [`can connect ${host}:${closed}`]: 'fail',
    [`cannot connect ${host}:${closed}`]: 'error',
    [`can connect ${host}:${apart.port}`]: 'fail',
    [`cannot connect ${host}:${apart.port}`]: 'pass',
    [`cannot connect 127.0.0.1:${answering.port}`]: 'pass',
    'cannot resolve other.stated.test': 'pass',
    'can resolve api.stated.test': 'pass',
    'cannot call fail': 'fail',
    'must ask fail': 'pass',
    'must ask error': 'fail',
    'cannot call echo': 'pass',
    'must ask echo': 'fail',
    'cannot call ech?': 'pass',
    'must ask absent': 'error',
    'cannot call absent*': 'error',
  }
  const assertions = Object.keys(lines).map((assert) => ({ assert, reason: 'r' }))
  await writeFile(join(at.folder, 'stated.json'), JSON.stringify({ version: 1, assertions }))
  const tests = join(at.folder, 'stated.json')
  const call = ['--call', 'fail', '--args', '{"text":"y"}']
  const child = at.start(['verify', '--server', 'echo', '--tests', tests, '--format', 'json', ...call])
  if (child.stdout === null || child.stderr === null) throw new Error('no pipes')
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  if (!out.startsWith('{')) throw new Error(err)
  const { verifications } = JSON.parse(out) as {
    verifications: {
      assertions: { text: string; verdict: string; evidence: string[] }[]
      inspections: { id: string; verdict: string; observed: string }[]
    }[]
  }
  const [found] = verifications
  if (found?.assertions.length === 0) throw new Error(JSON.stringify(found.inspections))
  expect(
    Object.fromEntries(found?.assertions.map(({ text: line, verdict }) => [line, verdict]) ?? []),
  ).toEqual(lines)
  expect(apart.seen).toEqual({ bytes: 0, connections: 0 })
  expect(answering.seen.bytes).toBeGreaterThan(0)
  const told = new Map(found?.assertions.map(({ text: line, evidence }) => [line, evidence.join('\n')]))
  expect([...told].filter(([, evidence]) => evidence === '')).toEqual([])
  const [reached, apartly] = [`can connect ${host}:${answering.port}`, `cannot connect ${host}:${apart.port}`]
  expect(told.get(reached)).toMatch(
    /^inside: api\.stated\.test:\d+ dialled: open.*\n(.*\n)*at the door: closed 127\.0\.0\.1.*, 27 down/,
  )
  expect(told.get(apartly)).toMatch(
    /^inside: api\.stated\.test:\d+ dialled: ECONNREFUSED, [\d.]+\nat the door: nothing came$/,
  )
  expect(told.get('cannot resolve other.stated.test')).toMatch(
    /^inside: other\.stated\.test asked of 127\.0\.0\.53: \w+, rcode \d+, 0 records\nat the door: refused name-not-listed/,
  )
  expect(told.get('can resolve api.stated.test')).toMatch(/^inside: .*: open, rcode 0, 1 records$/)
  expect(told.get('cannot call absent*')).toMatch(/^\d+ tools are listed or declared: .*echo, .*fail/)
  // Named, it is called though the rules would ask; it reports an error of its own, which is an answer.
  expect(found?.inspections.find(({ id }) => id === 'server.called')).toMatchObject({
    verdict: 'pass',
    observed: expect.stringContaining('the tool fail answered'),
  })
})

test.each([
  [['--server', 'absent'], 8, 'ERR_SERVER_NOT_FOUND'],
  [['--server', 'off'], 8, 'ERR_SERVER_DISABLED'],
  [['--call', 'echo'], 7, '--call: a tool is of one server'],
  [['--server', 'off', '--args', '{}'], 7, '--args: there is no call'],
  [['--server', 'off', '--call', 'echo', '--args', '[]'], 7, 'expected a JSON object'],
  [['--all-servers'], 7, 'nothing to verify'],
] as const)('nothing is tried of %j: status %i', async (args, status, said) => {
  await using at = await place(configOf({ off: fixture('echo', { enabled: false }) }))
  const ran = await at.run(['verify', ...args])
  expect([ran.status, ran.stdout]).toEqual([status, ''])
  expect(ran.stderr).toContain(said)
})
