// Who attaches says what it speaks: a shim and a transport of another protocol than the daemon's are told so, and start nothing.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTransport } from '../../src/client/transport.ts'
import { catalogue } from '../../src/errors.ts'
import { packageVersion } from '../../src/lib/version.ts'
import { protocolId } from '../../src/rpc/protocol.ts'
import { attached } from '../support/attached.ts'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'

const shimPath = fileURLToPath(new URL(`../../dist/libexec/${process.arch}/sallyport-stdio`, import.meta.url))
const other = protocolId.replace('1', '2')
const refusal = `this daemon (sallyport ${packageVersion()}) speaks ${protocolId}, the caller "${other}"; use the same version on both ends`
const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}\n`

let at: TestDaemon
beforeAll(async () => {
  at = await daemon(configOf({ echo: fixture('echo'), refused: fixture('echo') }))
})
afterAll(() => at[Symbol.asyncDispose]())

const instancesOf = async (server: string) => (await at.client.call('servers/get', { server })).instances
const socketPath = (): string => join(at.runtimeDir, 'host', 'host.sock')

/** The built shim with these words in the place of equally many bytes of its own, run with an MCP host's first message. */
async function runShim(server: string, protocol: string) {
  const bytes = await readFile(shimPath)
  const place = bytes.indexOf(protocolId)
  expect([place > 0, bytes.indexOf(protocolId, place + 1)]).toEqual([true, -1])
  bytes.write(protocol, place)
  const folder = await mkdtemp(join(at.folder, 'shim-'))
  const path = join(folder, 'sallyport-stdio') // by its name the program knows what it is
  await writeFile(path, bytes, { mode: 0o755 })
  const child = spawn(path, [server, '--socket', socketPath()], { env: {} })
  child.stdin.on('error', () => undefined).write(hello) // one that is refused reads none of it
  child.stdout.once('data', () => child.stdin.end()) // answered
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  return { stdout, stderr, status }
}

it('a shim of another protocol ends with what was got and expected, and its status, before anything starts', async () => {
  expect(await runShim('refused', other)).toEqual({
    stdout: '',
    stderr: `sallyport: ${refusal} (ERR_DAEMON_PROTOCOL)\n`,
    status: catalogue.ERR_DAEMON_PROTOCOL.exit,
  })
  expect(await instancesOf('refused')).toEqual([])
})

it('a shim of the daemon’s protocol is let in', async () => {
  const { stdout, stderr } = await runShim('echo', protocolId)
  expect(JSON.parse(stdout)).toMatchObject({ id: 0, result: { serverInfo: { name: 'echo' } } })
  expect(stderr).toBe('')
})

it('a host that says nothing of a protocol is let in as before', async () => {
  await using host = await attached(at, 'echo')
  expect((await host.call('echo', { a: 1 })).result).toMatchObject({ structuredContent: { a: 1 } })
})

it('a transport says what it speaks, and one of another protocol fails with the daemon’s code', async () => {
  // What passes on the way to the daemon is as it would be from a host of the other protocol.
  const path = join(at.folder, 'other')
  const server = createServer((host) => {
    const up = connect(socketPath())
    up.on('error', () => host.destroy()).pipe(host)
    host
      .on('error', () => up.destroy())
      .on('data', (chunk) => {
        up.write(chunk.toString().replace(`"protocol":"${protocolId}"`, `"protocol":"${other}"`))
      })
    host.on('close', () => up.destroy())
  })
  await once(server.listen(path), 'listening')
  try {
    const client = new Client({ name: 'host', version: '1' })
    const transport = createTransport({ server: 'refused', at: { socket: path } })
    await expect(client.connect(transport)).rejects.toMatchObject({
      code: 'ERR_DAEMON_PROTOCOL',
      message: expect.stringContaining(refusal),
    })
    expect(await instancesOf('refused')).toEqual([])
  } finally {
    server.close()
  }
})
