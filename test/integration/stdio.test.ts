// `sallyport stdio NAME`: a host's configuration stays as it is but for the command, and the host notices nothing.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect, it } from 'vitest'
import { configOf, daemon, fixture, place } from '../support/daemon.ts'
import type { Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'
import { type Process, processesWith } from '../support/processes.ts'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const config = configOf({ echo: fixture('echo'), never: fixture('never-initialize') })

async function host(at: Place, args: readonly string[]): Promise<Client> {
  const client = new Client({ name: 'host', version: '1' })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [main, 'stdio', ...args],
    env: { ...at.env },
    stderr: 'ignore',
  })
  await client.connect(transport)
  return client
}

it('an unmodified client finds its server behind it, and starts the daemon by the way', async () => {
  await using at = await place(config)
  const client = await host(at, ['echo'])
  expect(client.getServerVersion()).toMatchObject({ name: 'echo' })
  expect(await client.callTool({ name: 'echo', arguments: { a: 1 } })).toMatchObject({
    structuredContent: { a: 1 },
  })
  await client.close()
  await using operator = await at.connect('operator')
  await eventually(async () => {
    const { servers } = await operator.call('servers/list', {})
    return servers.every(({ instances }) => instances.every(({ state }) => state === 'stopped'))
  })
})

it('a session is narrowed by the file of the project that --project names, and only that one', async () => {
  await using at = await place(config)
  await mkdir(join(at.folder, 'project'))
  const narrow = { version: 1, rules: [{ permission: 'mcp:echo:echo', action: 'deny' }] }
  await writeFile(join(at.folder, 'project', '.sallyport.yaml'), JSON.stringify(narrow), { mode: 0o600 })
  const narrowed = await host(at, ['echo', '--project', join(at.folder, 'project')])
  const call = { name: 'echo', arguments: { a: 1 } }
  await expect(narrowed.callTool(call)).rejects.toMatchObject({
    message: expect.stringContaining('.sallyport.yaml rules[0] denies mcp:echo:echo'),
  })
  const whole = await host(at, ['echo'])
  expect(await whole.callTool(call)).toMatchObject({ structuredContent: { a: 1 } })
  await Promise.all([narrowed.close(), whole.close()])
})

it('ten hosts that start at once get one daemon and ten sessions', async () => {
  await using at = await place(config)
  const clients = await Promise.all(Array.from({ length: 10 }, () => host(at, ['echo'])))
  const answers = await Promise.all(
    clients.map((client, n) => client.callTool({ name: 'echo', arguments: { n } })),
  )
  expect(answers.map(({ structuredContent }) => structuredContent)).toEqual(clients.map((_, n) => ({ n })))
  await using operator = await at.connect('operator')
  const { servers } = await operator.call('servers/list', {})
  const ready = servers.flatMap(({ instances }) => instances).filter(({ state }) => state === 'ready')
  expect(ready).toHaveLength(10)
  expect(new Set(ready.map(({ pid }) => pid)).size).toBe(10)
  await Promise.all(clients.map((client) => client.close()))
})

it('a daemon that takes longer than sixteen seconds to come up, as on a machine that is busy, is waited for', async () => {
  await using at = await place(config)
  const connecting = handled(host(at, ['echo']))
  const { pid } = await eventually(() => processesWith(at.runtimeDir).find(isDaemon))
  process.kill(pid, 'SIGSTOP')
  await delay(16_000)
  process.kill(pid, 'SIGCONT')
  const client = await connecting
  expect(client.getServerVersion()).toMatchObject({ name: 'echo' })
  await client.close()
})

const isDaemon = ({ argv }: Process): boolean => argv.includes('serve') && !argv.includes('--background')

it('says in one line that no daemon runs where it may start none, with status 5', async () => {
  await using at = await place(config)
  const { status, stdout, stderr } = await at.run(['stdio', 'echo', '--no-autostart'])
  expect({ status, stdout }).toEqual({ status: 5, stdout: '' })
  expect(stderr).toMatch(/^sallyport: no daemon answers .*sallyport serve.*\n$/)
})

it('has the statuses of the command line for a server that is not there and a name that is none', async () => {
  await using at = await daemon(config)
  expect((await at.run(['stdio', 'nobody'])).status).toBe(8)
  expect((await at.run(['stdio', 'a b'])).status).toBe(7)
})

/** It goes on with what it was asked when its input ends. */
const lasting = fixture('slow', { args: ['/app/slow.mjs', 'to-the-end'] })

it('a host that closes its end, and then ends it, is not kept waiting, and its server is gone', async () => {
  await using at = await daemon(config)
  const child = at.start(['stdio', 'never'])
  child.stdin?.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
  const pids = async () => {
    const { instances } = await at.client.call('servers/get', { server: 'never' })
    return instances.filter(({ pid }) => pid !== null)
  }
  await eventually(async () => (await pids()).length > 0)
  const ended = once(child, 'exit')
  child.stdin?.end()
  child.kill('SIGTERM')
  await ended
  await eventually(async () => (await pids()).length === 0)
})

it('a host that says all at once, closes its end and reads on has every answer', async () => {
  await using at = await daemon(
    configOf({ slow: fixture('slow', { args: ['/app/slow.mjs', 'to-the-end'] }) }),
  )
  const wait = (id: number, ms: number) => ({
    id,
    method: 'tools/call',
    params: { name: 'wait', arguments: { ms } },
  })
  const messages = [
    { id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {} } },
    { method: 'notifications/initialized' },
    wait(1, 1500), // three times as long as a server has to end by itself
    { id: 2, method: 'ping' },
    wait(3, 0),
  ]
  const input = messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('')
  const { stdout, status } = await at.run(['stdio', 'slow'], { input })
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(answers.map(({ id, error }) => ({ id, error }))).toEqual(
    expect.arrayContaining([0, 1, 2, 3].map((id) => ({ id }))),
  )
  expect(status).toBe(0)
})

it('a host that is killed in a call leaves an outcome in the journal, and nothing running', async () => {
  await using at = await daemon(configOf({ slow: lasting }))
  const shim = at.start(['stdio', 'slow'])
  const say = (message: object): void =>
    void shim.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  say({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {} } })
  say({ id: 1, method: 'tools/call', params: { name: 'wait', arguments: { ms: 60_000 } } })
  const records = async (type: string) =>
    (await at.client.call('audit/query', { type, from: 'oldest' })).records
  await eventually(async () => (await records('call.intent')).length === 1)
  shim.kill('SIGKILL')
  const [outcome] = await eventually(async () => {
    const found = await records('call.outcome')
    return found.length > 0 && found
  })
  expect(outcome?.body).toMatchObject({ outcome: 'lost', subject: 'wait' })
  await eventually(async () => {
    const { servers } = await at.client.call('servers/list', {})
    return servers.every(({ instances }) => instances.every(({ pid }) => pid === null))
  })
})

/** A host on the socket itself, that the kernel has all of the lines of before it ends itself. */
const killedHost = `
import { once } from 'node:events'
import { connect } from 'node:net'
const socket = connect(process.argv[1])
const ask = async (id, method, params) => {
  socket.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\\n')
  await once(socket, 'data')
}
await ask(1, 'session/attach', { server: 'echo', protocol: 'sallyport/1' })
await ask(2, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
const call = (id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { id } } })
socket.pause()
socket.write(Array.from({ length: 200 }, (_, n) => call(n + 3) + '\\n').join(''), () => process.kill(process.pid, 'SIGKILL'))
`

it('what a host said in one breath before it was killed is carried out, or refused on record, to its last line', async () => {
  await using at = await daemon(configOf({ echo: fixture('echo') }))
  const args = ['--input-type=module', '-e', killedHost, join(at.runtimeDir, 'host', 'host.sock')]
  expect(() => execFileSync(process.execPath, args, { timeout: patienceMs, stdio: 'pipe' })).toThrow(
    expect.objectContaining({ signal: 'SIGKILL' }),
  )
  const count = async (type: string) =>
    (await at.client.call('audit/query', { type, limit: 500 })).records.length
  await eventually(async () => (await count('call.outcome')) + (await count('call.denied')) === 200)
})

it('a host that said all that it had to is told why its server could not be started', async () => {
  await using at = await daemon(
    configOf({ nope: { ...fixture('echo'), command: 'nope' } }, { allowed_commands: ['nope'] }),
  )
  const params = { protocolVersion: '2025-11-25', capabilities: {} }
  for (let times = 0; times < 8; times++) {
    const input = `${JSON.stringify({ jsonrpc: '2.0', id: times, method: 'initialize', params })}\n`
    const { stdout, status } = await at.run(['stdio', 'nope'], { input })
    expect(status).toBe(8)
    expect(JSON.parse(stdout)).toMatchObject({
      id: times,
      error: { data: { code: 'ERR_COMMAND_NOT_FOUND' } },
    })
  }
})

it('the command of the package becomes the shim beside it, wherever it is linked to', async () => {
  await using dir = await tempDir()
  const of = (...names: string[]): string => join(dir.path, ...names)
  const libexec = of('a package', 'dist', 'libexec', process.arch)
  for (const folder of [libexec, of('a package', 'sandbox'), of('bin')])
    await mkdir(folder, { recursive: true })
  const command = fileURLToPath(new URL('../../sandbox/sallyport-stdio', import.meta.url))
  await copyFile(command, of('a package', 'sandbox', 'sallyport-stdio'))
  await writeFile(join(libexec, 'sallyport-stdio'), '#!/bin/sh\necho "$$" "$@"\n', { mode: 0o755 })
  await symlink('../a package/sandbox/sallyport-stdio', of('bin', 'linked'))
  await symlink(of('bin', 'linked'), of('bin', 'sallyport-stdio'))
  const env = { PATH: `${of('bin')}:/usr/bin:/bin` }
  for (const shim of [of('bin', 'sallyport-stdio'), 'sallyport-stdio']) {
    // It is the shim then, with the same number, and no shell stays beside it.
    const said = execFileSync('/bin/sh', ['-c', 'echo $$; exec "$@"', 'sh', shim, 'files', 'a b'], { env })
    const [own = '', became = ''] = said.toString().split('\n')
    expect(became).toBe(`${own} files a b`)
  }
})
