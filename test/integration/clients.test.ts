// Published clients, unmodified, and servers of both lines of the SDK: `sallyport stdio NAME` is all that they are told.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client as ClientOfTwo } from '@modelcontextprotocol/client'
import { StdioClientTransport as TransportOfTwo } from '@modelcontextprotocol/client/stdio'
import { Client as ClientOfOne } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as TransportOfOne } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configOf, daemon, type TestDaemon } from '../support/daemon.ts'
import { patienceMs } from '../support/patience.ts'
import { watching } from '../support/watching.ts'

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const shim = at(`dist/libexec/${process.arch}/sallyport-stdio`)
const server = (source: string, script: string): object => ({
  command: 'node',
  args: [`/app/${script}`],
  package: { source: at(source), target: '/app', with: [at('node_modules')] },
  profile: 'node',
  trust: 'trusted',
  acceptance: 'first-use',
})
const published = server('node_modules/@modelcontextprotocol/server-everything', 'dist/index.js')
const rules = [
  { permission: 'mcp:asked:*', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]
const servers = {
  // Which tools it has depends on what the client can do
  everything: { ...published, surface: 'dynamic' },
  modern: server('test/fixtures/packages/modern', 'index.mjs'),
  asked: { ...published, surface: 'dynamic' },
}
const config = configOf(servers, { rules, approval: { wait_ms: 500 } })

let running: TestDaemon
beforeAll(async () => {
  running = await daemon(config)
}, 60_000)
afterAll(() => running[Symbol.asyncDispose]())

const command = (name: string) => ({
  command: shim,
  args: [name, '--no-autostart'],
  env: { ...running.env },
  stderr: 'ignore' as const,
})

it('a client of the SDK’s first line lists, calls, reads and completes', async () => {
  const client = new ClientOfOne({ name: 'host', version: '1' })
  await client.connect(new TransportOfOne(command('everything')))
  expect((await client.listTools()).tools.length).toBeGreaterThan(5)
  const { content } = await client.callTool({ name: 'get-sum', arguments: { a: 19, b: 23 } })
  expect(JSON.stringify(content)).toContain('42')
  expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0)
  expect((await client.listResources()).resources.length).toBeGreaterThan(0)
  await client.close()
})

describe('a client of the SDK’s second line that finds out the era, by starting the command twice', () => {
  it.each([
    ['everything', 'echo', { message: 'hello' }],
    ['modern', 'greet', {}],
  ])('works with %s', async (name, tool, args) => {
    const client = new ClientOfTwo({ name: 'host', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    await client.connect(new TransportOfTwo(command(name)))
    const { content } = await client.callTool({ name: tool, arguments: args })
    expect(JSON.stringify(content)).toContain('hello')
    await client.close()
  })
})

describe('arguments that the tool’s schema does not allow are an answer that a model can read, and no exception', () => {
  const [first, second] = [{ name: 'host', version: '1' }, { versionNegotiation: { mode: 'auto' } }] as const
  const answer = { isError: true, _meta: { 'sallyport/error': { data: { code: 'ERR_ARGUMENTS_INVALID' } } } }

  it('to a client of the SDK’s first line', async () => {
    const client = new ClientOfOne(first)
    await client.connect(new TransportOfOne(command('everything')))
    const result = await client.callTool({ name: 'get-sum', arguments: { a: 'x', b: 23 } })
    expect(result).toMatchObject({ ...answer, content: [{ text: expect.stringContaining('/a: ') }] })
    await client.close()
  })

  it.each([
    ['everything', 'echo', { message: 7 }, '/message: '],
    ['modern', 'greet', { name: 7 }, '/name: '],
  ])('to a client of the second line, of %s', async (name, tool, args, place) => {
    const client = new ClientOfTwo(first, second)
    await client.connect(new TransportOfTwo(command(name)))
    const result = await client.callTool({ name: tool, arguments: args })
    expect(result).toMatchObject({ ...answer, content: [{ text: expect.stringContaining(place) }] })
    await client.close()
  })
})

it('what came of asking an operator is an answer that a model can read, and no exception', async () => {
  const client = new ClientOfOne({ name: 'host', version: '1' })
  await client.connect(new TransportOfOne(command('asked')))
  const sum = () => client.callTool({ name: 'get-sum', arguments: { a: 19, b: 23 } })
  const answer = (code: string, words: string): object => ({
    isError: true,
    content: [{ text: expect.stringContaining(words) }],
    _meta: { 'sallyport/error': { data: { code } } },
  })
  expect(await sum()).toMatchObject(answer('ERR_APPROVAL_UNAVAILABLE', 'no operator is listening'))
  {
    await using _silent = await watching(running.client, async () => undefined)
    expect(await sum()).toMatchObject(answer('ERR_APPROVAL_TIMEOUT', 'within'))
  }
  await using _watch = await watching(running.client, ({ id }) =>
    running.client.call('approvals/deny', { id, reason: 'not on a Sunday' }),
  )
  expect(await sum()).toMatchObject(answer('ERR_APPROVAL_DENIED', 'not on a Sunday'))
  await client.close()
})

it('the inspector’s command line lists and calls', async () => {
  const inspect = async (...args: readonly string[]): Promise<string> => {
    const inspector = at('node_modules/.bin/mcp-inspector')
    const { stdout } = await promisify(execFile)(
      inspector,
      // It hands on none of its own variables, as most hosts do not
      ['--cli', shim, 'everything', '--socket', join(running.runtimeDir, 'host/host.sock'), ...args],
      { env: { ...running.env }, timeout: patienceMs },
    )
    return stdout
  }
  expect(await inspect('--method', 'tools/list')).toContain('get-sum')
  const call = [
    '--method',
    'tools/call',
    '--tool-name',
    'get-sum',
    '--tool-arg',
    'a=19',
    '--tool-arg',
    'b=23',
  ]
  expect(await inspect(...call)).toContain('42')
})
