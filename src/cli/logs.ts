// `sallyport logs NAME`: what a server wrote to stderr.
import type { Command } from 'commander'
import { SallyportError } from '../errors.ts'
import { visibleJson } from '../lib/visible-json.ts'
import { wholeNumber } from './number.ts'
import { hint, printJson, printPiece, visibleLines } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface LogsOptions extends ReachOptions {
  readonly follow?: boolean
  readonly lines: number
}

export function registerLogs(program: Command): void {
  reaching(program.command('logs'))
    .description('show what a server wrote to stderr')
    .argument('<name>')
    .option('-f, --follow', 'go on with what it writes from now on')
    .option('-n, --lines <count>', 'most lines of the past', count, 100)
    .action((name: string, options: LogsOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { lines } = options
        if (options.follow === true) {
          for await (const line of client.logs(name, { lines, signal, lost: sayLost }))
            await printPiece(
              options.json === true ? `${visibleJson({ server: name, line })}\n` : shown(line),
              { signal },
            )
          return
        }
        const result = await client.call('servers/logs', { server: name, lines }, { signal })
        if (options.json === true) return printJson(result)
        for (const line of result.lines) await printPiece(shown(line), { signal })
        if (result.dropped > 0)
          hint(`${result.dropped} bytes before these are no longer kept, or have no room here`)
      }),
    )
}

const sayLost = (count: number): void => hint(`${count} lines went by here, since these were read too slowly`)

const shown = (line: string): string => `${visibleLines(line, process.stdout)}\n`

function count(text: string): number {
  const value = wholeNumber(text, 0, 100_000)
  if (value !== null) return value
  throw new SallyportError(
    'ERR_USAGE',
    `--lines: got ${JSON.stringify(text)}, expected a whole number up to 100000`,
  )
}
