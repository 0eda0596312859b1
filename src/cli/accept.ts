// `sallyport accept NAME`: the operator's yes to what a server lists now, in the words of a declaration.
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import { loadDeclaration } from '../config/declaration.ts'
import { thisHost } from '../config/host.ts'
import { counted } from '../lib/counted.ts'
import { hint, isDone, printJson, printTable } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface AcceptOptions extends ReachOptions {
  readonly declaration?: string
  readonly tool?: readonly string[]
}

export function registerAccept(program: Command): void {
  reaching(program.command('accept'))
    .description('accept what a server lists now; what it lists otherwise later is not callable')
    .argument('<name>')
    .option(
      '--declaration <file>',
      'as declared there; without it as the configuration declares, or as drafted',
    )
    .option('--tool <name...>', 'only these, beside what is accepted already')
    .action((server: string, options: AcceptOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { declaration: path, tool } = options
        const declaration = path === undefined ? {} : await readDeclaration(client, server, path, signal)
        const tools = tool === undefined ? {} : { tools: [...tool] }
        const result = await client.call(
          'declarations/accept',
          { server, ...declaration, ...tools },
          { signal },
        )
        const { accepted, left_out: leftOut, borrowed, declaration_version: version } = result
        isDone(`of ${server} ${counted(accepted.length, 'tool is', 'tools are')} accepted`)
        if (options.json === true) return printJson(result)
        const noted = (name: string): string =>
          borrowed.includes(name) ? ', under a name of hosts’ own tools' : ''
        printTable(
          ['TOOL', `DECLARATION ${version}`],
          [
            ...accepted.map((name) => [name, { text: `accepted${noted(name)}`, style: 'green' as const }]),
            ...leftOut.map((name) => [name, { text: 'left out: not callable', style: 'dim' as const }]),
          ],
        )
        if (accepted.length === 0) hint(`nothing of ${server} is callable`)
      }),
    )
}

/** Judged here, so that what is wrong is said with file and line; the daemon judges again. */
async function readDeclaration(
  client: Client,
  server: string,
  path: string,
  signal: AbortSignal,
): Promise<{ readonly declaration: Record<string, unknown> }> {
  const granted = await client.call('servers/get', { server }, { signal })
  const { declaration } = await loadDeclaration(resolve(path), [thisHost().uid], granted)
  return { declaration: { ...declaration } }
}
