// What the SDK makes it easy to write: a server that hands each request to a client of another one. `node sdk-proxy.ts COMMAND ARGS`
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [command = '', ...args] = process.argv.slice(2)
const client = new Client({ name: 'proxy', version: '1.0.0' })
await client.connect(new StdioClientTransport({ command, args }))
const server = new Server({ name: 'proxy', version: '1.0.0' }, { capabilities: { tools: {} } })
server.setRequestHandler(ListToolsRequestSchema, ({ params }) => client.listTools(params))
server.setRequestHandler(CallToolRequestSchema, ({ params }) => client.callTool(params))
process.stdin.once('end', () => void client.close())
await server.connect(new StdioServerTransport())
