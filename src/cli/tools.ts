// `sallyport tools [SERVER]`: what can be called, and what policy says of it.
import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import type { ToolView } from '../rpc/governed.ts'
import { hint, printJson, printTable, visible } from './output.ts'
import type { Cell } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

export function registerTools(program: Command): void {
  reaching(program.command('tools'))
    .description('list the tools of the servers that are connected')
    .argument('[server]', 'only this server’s')
    .action((server: string | undefined, options: ReachOptions) =>
      reach(options, 'any', async ({ client, signal }) => {
        const result = await client.call('tools/list', server === undefined ? {} : { server }, { signal })
        if (options.json === true) printJson(result)
        else if (result.tools.length > 0) print(result.tools)
        else hint(visible(`no tools: ${await whyNone(client, server, signal)}`))
        if (options.json !== true && result.collisions.length > 0) hint(visible(collided(result.collisions)))
      }),
    )
}

const collided = (names: readonly string[]): string =>
  `${names.join(', ')}: a name that two tools would have is shown for neither; rename one of their servers, or change tools.naming`

const styles = { allow: 'green', ask: 'yellow', deny: 'red' } as const

async function whyNone(client: Client, server: string | undefined, signal: AbortSignal): Promise<string> {
  const connects = `a server that is not connected lists none; sallyport start ${server ?? 'NAME'} connects it`
  if (server === undefined) return connects
  const { state, reason } = await client.call('servers/get', { server }, { signal })
  if (state === 'pending') return connects
  if (state === 'connected') return `${server} lists none, or its entry exposes none of them`
  return `${server} is not connected: ${reason ?? state}; see sallyport show ${server}`
}

function print(tools: readonly ToolView[]): void {
  printTable(
    ['SERVER', 'TOOL', 'POLICY', 'DESCRIPTION'],
    tools.map((tool): (string | Cell)[] => [
      tool.server,
      tool.tool,
      { text: tool.decision, style: styles[tool.decision] },
      tool.description.split('\n')[0] ?? '',
    ]),
    'cut',
  )
}
