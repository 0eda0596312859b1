// The main job: published servers, called over the socket, and from an unmodified MCP client through the shim.
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { SallyportError } from '../../src/errors.ts'
import { cli, type Daemon } from './stage.ts'
import { short, type Table } from './table.ts'

/** How long a call may take that launches its server first, also as a container on a busy machine, ms */
export const callDeadlineMs = 180_000

type Call = readonly [server: string, tool: string, args: Record<string, unknown>, expected: string]

/** Calls, each with what its answer must hold: text of the result, or the code of a refusal. */
const overSocket: readonly Call[] = [
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

const overStdio: readonly Call[] = [
  ['files', 'list_directory', { path: '/documents' }, 'letter.txt'],
  ['memory', 'read_graph', {}, 'entities'],
  ['everything', 'echo', { message: 'through two doors' }, 'through two doors'],
]

export async function socketTable({ client }: Daemon): Promise<Table> {
  const rows = []
  for (const [server, tool, args, expected] of overSocket) {
    const from = performance.now()
    const answer = await client
      .call('tools/call', { server, tool, arguments: args }, { signal: AbortSignal.timeout(callDeadlineMs) })
      .then(({ data, error_text: text }) => text ?? textOf(data))
      .catch((error: unknown) =>
        error instanceof DOMException
          ? `no answer in ${callDeadlineMs / 1000} s`
          : SallyportError.from(error).code,
      )
    const cells = [server, tool, short(answer, 56), inMs(performance.now() - from)]
    rows.push({ cells, isAsPromised: answer.includes(expected) })
  }
  const title = 'Published servers at work, called through the socket (the first call launches)'
  return { title, head: ['server', 'tool', 'answer', '   ms'], rows }
}

export async function stdioTable({ runtimeDir }: Daemon): Promise<Table> {
  const rows = []
  for (const [server, tool, args, expected] of overStdio) {
    const from = performance.now()
    const client = new McpClient({ name: 'demo', version: '1.0.0' })
    await client.connect(shimOf(server, runtimeDir), { timeout: callDeadlineMs })
    const { tools } = await client.listTools()
    const connected = performance.now()
    const answer = textOf(await client.callTool({ name: tool, arguments: args }))
    const times = [inMs(connected - from), inMs(performance.now() - connected)]
    await client.close()
    const cells = [server, `${tools.length}`.padStart(5), tool, short(answer, 40), ...times]
    rows.push({ cells, isAsPromised: tools.length > 0 && answer.includes(expected) })
  }
  const title = 'The same servers in an unmodified MCP client, whose command is `sallyport stdio NAME`'
  return { title, head: ['server', 'tools', 'tool', 'answer', 'connect ms', 'call ms'], rows }
}

/** The text of a tool's result, other blocks by their kind. */
function textOf(result: unknown): string {
  const { content } = CallToolResultSchema.parse(result)
  return content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join(' ')
}

function shimOf(server: string, runtimeDir: string): StdioClientTransport {
  const env = { SALLYPORT_RUNTIME_DIR: runtimeDir }
  return new StdioClientTransport({
    command: process.execPath,
    args: [cli, 'stdio', server, '--no-autostart'],
    env,
    stderr: 'inherit',
  })
}

function inMs(ms: number): string {
  return ms.toFixed(ms < 10 ? 1 : 0).padStart(5)
}
