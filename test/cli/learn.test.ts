// sallyport profile learn, as a person runs it: by a drive, by a program, by a host of one’s own.
import { spawn } from 'node:child_process'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { openPackage } from '../support/learning.ts'
import { tempDir } from '../support/temp-dir.ts'

/** An ordinary user to whom no control group was given has nothing that holds the processor. */
const proven = /verify: (pass|not-enforced)/

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

async function start(args: readonly string[]) {
  await using home = await tempDir()
  const env = { HOME: home.path, PATH: process.env['PATH'] }
  const child = spawn(process.execPath, [cli, 'profile', ...args], { env, stdio: 'pipe' })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [out, err, status] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { out, err, status }
}

test('a host of one’s own drives the server, and its session is what the draft is proven with', async () => {
  await using at = await openPackage('needs.mjs')
  const draft = join(at.path, 'by-host.yaml')
  const letter = join(at.documents, 'letter.txt')
  const args = ['learn', '--stdio', '--out', draft, '--read', letter, '--', process.execPath, at.server]
  await using home = await tempDir()
  const env = { HOME: home.path, PATH: process.env['PATH'] }
  const child = spawn(process.execPath, [cli, 'profile', ...args], { env, stdio: 'pipe' })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const stderr = text(child.stderr)
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'mine', version: '1' },
  }
  child.stdin.write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":${JSON.stringify(params)}}\n`)
  const call = { name: 'read', arguments: { path: letter } }
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: call })}\n`)
  let out = ''
  for await (const chunk of child.stdout) {
    out += String(chunk)
    if (out.split('\n').length > 2) child.stdin.end()
  }
  expect([await ended, await stderr]).toEqual([0, expect.stringMatching(proven)])
  const answers = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { result?: object })
  expect(answers).toMatchObject([
    { result: { serverInfo: { name: 'needs' } } },
    { result: { content: [{ text: 'two doors' }] } },
  ])
  const written = await readFile(draft, 'utf8')
  expect(written).toContain('# Proven with what your host said: 2 requests')
  expect(written).toContain(`path: "${letter}"`)

  const linted = await start(['lint', draft])
  expect([linted.status, linted.out]).toEqual([
    0,
    expect.stringContaining('it is a draft that nobody has read'),
  ])
  await writeFile(draft, written.replace(/^draft: .*\n/m, ''))
  expect((await start(['lint', draft])).out).not.toContain('draft that nobody')
})

test('between a host and the server every byte passes as it is', async () => {
  await using home = await tempDir()
  const out = join(home.path, 'cat.yaml')
  const env = { HOME: home.path, PATH: process.env['PATH'] }
  const child = spawn(
    process.execPath,
    [cli, 'profile', 'learn', '--stdio', '--out', out, '--', '/bin/cat'],
    {
      env,
      stdio: 'pipe',
    },
  )
  child.stderr.resume()
  // Odd spacing, a number that no parser keeps, a key twice, bytes that are no text, and a line without an end.
  const odd = Buffer.from('{"id" :12345678901234567890,  "id":1}\r\n\xff\x00{{\nlast', 'latin1')
  child.stdin.end(odd)
  const [stdout] = await Promise.all([
    buffer(child.stdout),
    new Promise((resolve) => child.once('close', resolve)),
  ])
  expect(stdout.equals(odd)).toBe(true)
})

test('a server that ends and has read nothing of what its host says is no trouble of the host’s streams', async () => {
  await using home = await tempDir()
  const out = join(home.path, 'true.yaml')
  const env = { HOME: home.path, PATH: process.env['PATH'] }
  const args = [cli, 'profile', 'learn', '--stdio', '--out', out, '--', '/bin/true']
  const child = spawn(process.execPath, args, { env, stdio: 'pipe' })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  child.stdout.resume()
  child.stdin.on('error', () => undefined) // it may end before it has read all of this
  child.stdin.end(Buffer.alloc(4_000_000, 'x'))
  const [status, err] = await Promise.all([ended, text(child.stderr)])
  expect([status, err]).toEqual([0, expect.stringMatching(proven)])
  expect(await readFile(out, 'utf8')).toContain('# Proven with what your host said')
})

test('a program drives it as its host, and a draft under which the program fails is not proven', async () => {
  await using at = await openPackage('needs.mjs')
  const program = join(at.path, 'host.sh')
  const count = join(at.path, 'count')
  // Content with it while it is watched, and with nothing after that.
  const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"p","version":"1"}}}`
  await writeFile(
    program,
    `#!/bin/sh\necho '${hello}'\nread answer || exit 3\necho x >> ${count}\n[ $(wc -l < ${count}) -le 2 ]\n`,
  )
  await chmod(program, 0o755)
  const { out, err, status } = await start([
    'learn',
    '--json',
    '--drive',
    program,
    '--network',
    'none',
    '--',
    process.execPath,
    at.server,
  ])
  expect([status, err]).toEqual([4, expect.stringContaining('not proven')])
  const learned = JSON.parse(out) as { profile: string; verdict: string | null; proof: { holds: boolean } }
  expect(learned).toMatchObject({ verdict: null, proof: { holds: false, failed: [] } })
  expect(learned.profile).toContain('# Not proven with the program')
})

test.each([
  ['ERR_USAGE', 7, ['--drive', '/nonexistent.jsonl']],
  ['ERR_USAGE', 7, ['--stdio']],
  ['ERR_USAGE', 7, ['--stdio', '--drive', 'x', '--out', 'y']],
  ['ERR_USAGE', 7, ['--out', cli]],
  ['ERR_USAGE', 7, ['--out', '/nonexistent/node.yaml']],
  ['ERR_USAGE', 7, ['--env', '1=2']],
  ['ERR_USAGE', 7, ['--allow', 'example.com']],
  ['ERR_USAGE', 7, ['--driver', 'docker']],
  ['ERR_MOUNT_REFUSED', 7, ['--write', '/etc']],
  ['ERR_MOUNT_REFUSED', 7, ['--write', '/nonexistent']],
  ['ERR_ENVIRONMENT_REFUSED', 7, ['--env', 'NODE_OPTIONS=--import=/x.mjs']],
] as const)('%s, exit status %i, for %j, and nothing of the server has run', async (code, status, args) => {
  const said = await start(['learn', ...args, '--', '/bin/cat'])
  expect([said.status, said.out]).toEqual([status, ''])
  expect(said.err).toContain(code)
})

test.each([
  [['npx', '-y', 'some-server@1.2.3'], 'npm install some-server@1.2.3, then learn node'],
  [['uv', 'tool', 'run', 'some-server==1.2.3'], 'pip install --target FOLDER some-server==1.2.3'],
] as const)('of %j the package is learned, not what fetches it', async (command, way) => {
  const said = await start(['learn', '--', ...command])
  expect([said.status, said.out]).toEqual([7, ''])
  expect(said.err).toContain(way)
})

test('a draft is proven where the umask lets others write', async () => {
  await using at = await openPackage('echo.mjs')
  await using home = await tempDir()
  const asked = [cli, 'profile', 'learn', '--', process.execPath, at.server]
  const env = { HOME: home.path, PATH: process.env['PATH'] }
  const child = spawn('sh', ['-c', 'umask 000; exec "$0" "$@"', process.execPath, ...asked], {
    env,
    stdio: 'pipe',
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  expect(await text(child.stderr)).toContain('pass under the draft')
  expect(await ended).toBe(0)
})
