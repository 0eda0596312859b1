// `sallyport test NAME`: does the server start in its sandbox, shake hands and list the tools that were accepted?
import type { Command } from 'commander'
import { printJson, printTable } from './output.ts'
import type { Cell } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

export function registerTest(program: Command): void {
  reaching(program.command('test'))
    .description(
      'launch a server in its sandbox, shake hands, compare its tools with those accepted, stop it',
    )
    .argument('<name>')
    .action((name: string, options: ReachOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const result = await client.call('servers/test', { server: name }, { signal })
        if (!result.ok) process.exitCode = 1
        if (options.json === true) return printJson(result)
        printTable(
          ['STEP', '', 'MS', 'DETAIL'],
          result.steps.map(({ step, ok, detail, ms }): (string | Cell)[] => [
            step,
            ok ? { text: 'ok', style: 'green' } : { text: 'not', style: 'red' },
            ms.toFixed(0),
            detail,
          ]),
        )
      }),
    )
}
