// `sallyport events`: what happens in the daemon, as it happens.
import type { Command } from 'commander'
import { SallyportError } from '../errors.ts'
import { visibleJson } from '../lib/visible-json.ts'
import type { SallyportEvent } from '../rpc/protocol.ts'
import { wholeNumber } from './number.ts'
import { paint, printPiece, visible } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface EventsOptions extends ReachOptions {
  readonly since?: number
}

export function registerEvents(program: Command): void {
  reaching(program.command('events'))
    .description('follow what happens to servers and calls')
    .option('--since <number>', 'begin after the event of this number; 0 is all that is kept', number)
    .action((options: EventsOptions) =>
      reach(options, 'any', async ({ client, signal }) => {
        const since = options.since === undefined ? {} : { since: options.since }
        for await (const event of client.events({ ...since, signal }))
          await printPiece(`${options.json === true ? visibleJson(event) : line(event)}\n`, { signal })
      }),
    )
}

function line({ seq, at, type, server, detail }: SallyportEvent): string {
  const fields = Object.entries(detail).map(
    ([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const head = `${paint('dim', `${at.slice(11, 23)} #${seq}`)} ${type} ${server ?? ''}`
  return `${head}${visible(fields.join(''))}`.trimEnd()
}

function number(text: string): number {
  const value = wholeNumber(text)
  if (value !== null) return value
  throw new SallyportError(
    'ERR_USAGE',
    `--since: got ${JSON.stringify(text)}, expected the number of an event`,
  )
}
