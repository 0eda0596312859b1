// `npm run demo`: three published servers do their work behind the wall, and a hostile one tries to get out.
// Ends with 0 only if every line is as promised, and leaves nothing behind.
import { homedir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { SallyportError } from '../../src/errors.ts'
import { attemptsOn, type Outcome, type Try } from './attempts.ts'
import { cli, plant, secretEnvironment, Stage, startDaemon, type Daemon, type Loot } from './stage.ts'
import { bold, dim, green, printTable, red, short, type Row } from './table.ts'

const callDeadlineMs = 20_000
const started = performance.now()
let notAsPromised = 1
const abort = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => abort.abort(new Error(`interrupted by ${signal}`)))

try {
  await using stage = new Stage()
  const interrupted = new Promise<never>((_, reject) => {
    abort.signal.addEventListener('abort', () => reject(abort.signal.reason as Error), { once: true })
  })
  interrupted.catch(() => {})
  notAsPromised = await Promise.race([play(stage), interrupted])
} catch (error) {
  console.error(`\n${red('the demo broke off')}: ${error instanceof Error ? error.message : String(error)}`)
}
const seconds = ((performance.now() - started) / 1000).toFixed(1)
if (notAsPromised === 0) console.log(`\n${green('every line is as promised')} ${dim(`(${seconds} s)`)}`)
else console.log(`\n${red(`${notAsPromised} not as promised`)} ${dim(`(${seconds} s)`)}`)
process.exitCode = notAsPromised === 0 ? 0 : 1

/** Plays all of it and returns how many lines are not as promised. */
async function play(stage: Stage): Promise<number> {
  const daemon = await startDaemon(stage)
  const loot = await plant(stage)
  const { version, separation } = daemon.client.hello
  console.log(`${bold('Sallyport')} ${version}, daemon ${daemon.process.pid}, separation ${separation}`)
  const work = [
    printTable('Published servers at work, through the socket', ...(await socketRows(daemon))),
    printTable(
      'The same servers in an unmodified MCP client, through `sallyport stdio`',
      ...(await stdioRows(daemon)),
    ),
    printTable('A hostile server tries to', ...(await hostileRows(stage, daemon, loot))),
  ]
  return work.reduce((sum, broken) => sum + broken, 0)
}

type Table = readonly [head: readonly string[], rows: readonly Row[]]

/** A call over the socket, and what its answer must hold: text of the result, or the code of a refusal. */
const overSocket: readonly (readonly [
  server: string,
  tool: string,
  args: Record<string, unknown>,
  expected: string,
])[] = [
  ['files', 'read_text_file', { path: '/documents/letter.txt' }, 'two doors'],
  ['files', 'write_file', { path: '/documents/new.txt', content: 'x' }, 'ERR_POLICY_DENIED'],
  [
    'files',
    'edit_file',
    { path: '/documents/letter.txt', edits: [{ oldText: 'two', newText: 'no' }] },
    'EROFS',
  ],
  [
    'memory',
    'create_entities',
    { entities: [{ name: 'gate', entityType: 'door', observations: ['shut'] }] },
    'shut',
  ],
  ['memory', 'read_graph', {}, 'shut'],
  ['everything', 'get-sum', { a: 19, b: 23 }, '42'],
  ['everything', 'get-env', {}, 'HOME'],
]

async function socketRows({ client }: Daemon): Promise<Table> {
  const rows: Row[] = []
  for (const [server, tool, args, expected] of overSocket) {
    const from = performance.now()
    const answer = await client
      .call('tools/call', { server, tool, arguments: args }, { signal: AbortSignal.timeout(callDeadlineMs) })
      .then(({ type, data, error_text }) => (type === 'output' ? textOf(data) : (error_text ?? textOf(data))))
      .catch((error: unknown) => SallyportError.from(error).code)
    const ms = performance.now() - from
    rows.push({ cells: [server, tool, short(answer, 56), inMs(ms)], isAsPromised: answer.includes(expected) })
  }
  return [['server', 'tool', 'answer', 'ms'], rows]
}

async function stdioRows({ runtimeDir }: Daemon): Promise<Table> {
  const rows: Row[] = []
  for (const [server, name, args, expected] of [
    ['files', 'list_directory', { path: '/documents' }, 'letter.txt'],
    ['memory', 'read_graph', {}, 'entities'],
    ['everything', 'echo', { message: 'through two doors' }, 'through two doors'],
  ] as const) {
    const from = performance.now()
    const client = new McpClient({ name: 'demo', version: '1.0.0' })
    await client.connect(stdioOf(server, runtimeDir))
    const connected = performance.now() - from
    const { tools } = await client.listTools()
    const answer = textOf(await client.callTool({ name, arguments: args }))
    const ms = performance.now() - from - connected
    await client.close()
    rows.push({
      cells: [server, `${tools.length} tools`, name, short(answer, 40), inMs(connected), inMs(ms)],
      isAsPromised: tools.length > 0 && answer.includes(expected),
    })
  }
  return [['server', 'lists', 'tool', 'answer', 'connect ms', 'call ms'], rows]
}

/** Both arms: the hostile server as any host would start it, and the same file behind the wall. */
async function hostileRows(stage: Stage, { client, process: daemon }: Daemon, loot: Loot): Promise<Table> {
  const bare = new McpClient({ name: 'demo', version: '1.0.0' })
  await bare.connect(bareServer())
  stage.onEnd(() => bare.close())
  const outside: Try = async (name, args) => findingsIn(await bare.callTool({ name, arguments: args }))
  const inside: Try = async (tool, args) => {
    const waiting = { signal: AbortSignal.timeout(callDeadlineMs) }
    const { data } = await client.call('tools/call', { server: 'hostile', tool, arguments: args }, waiting)
    return findingsIn(data)
  }
  const rows: Row[] = []
  for (const { title, isTriedBare, run } of attemptsOn(loot, homedir(), daemon.pid)) {
    const control = isTriedBare ? await run(outside, true) : null
    const held = await run(inside, false)
    rows.push({
      cells: [title, shown(control, red), shown(held, green)],
      isAsPromised: !held.isSuccess && (control === null || control.isSuccess),
    })
  }
  return [['', 'without Sallyport', 'with Sallyport'], rows]
}

function shown(outcome: Outcome | null, paint: (text: string) => string): string {
  return outcome === null ? dim('not tried') : paint(short(outcome.words, 36))
}

function stdioOf(server: string, runtimeDir: string): StdioClientTransport {
  const env = { SALLYPORT_RUNTIME_DIR: runtimeDir }
  return new StdioClientTransport({
    command: process.execPath,
    args: [cli, 'stdio', server],
    env,
    stderr: 'inherit',
  })
}

function bareServer(): StdioClientTransport {
  const file = fileURLToPath(new URL('../fixtures/servers/hostile.mjs', import.meta.url))
  const env = Object.fromEntries(
    Object.entries(secretEnvironment()).map(([name, value]) => [name, value ?? '']),
  )
  return new StdioClientTransport({ command: process.execPath, args: [file], env, stderr: 'ignore' })
}

function textOf(result: unknown): string {
  const { content } = CallToolResultSchema.parse(result)
  return content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join(' ')
}

function findingsIn(result: unknown): Awaited<ReturnType<Try>> {
  return CallToolResultSchema.parse(result).structuredContent as unknown as Awaited<ReturnType<Try>>
}

function inMs(ms: number): string {
  return ms.toFixed(ms < 10 ? 1 : 0).padStart(5)
}
