// `sallyport tools [SERVER]`: what can be called, and what policy says of it.
import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import type { ToolView } from '../rpc/governed.ts'
import type { InstanceView } from '../rpc/instance-view.ts'
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
  const { state, reason, instances } = await client.call('servers/get', { server }, { signal })
  // What a host is connected to in a session of its own says nothing here.
  const isOurs = ({ purpose, principal, state: at }: InstanceView): boolean =>
    (purpose === 'control' || purpose === 'shared') &&
    principal === client.hello.principal.id &&
    (at === 'ready' || at === 'draining')
  if (state === 'connected' && instances.some(isOurs))
    return `${server} lists none, or its entry exposes none of them`
  if (state === 'pending' || state === 'connected') return connects
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
