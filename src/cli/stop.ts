// `sallyport stop NAME`: ends what runs of a server; the next call starts it again.
import type { Command } from 'commander'
import { printDone } from './output.ts'
import { reach, reaching } from './reach.ts'
import { counted } from '../lib/counted.ts'
import type { ReachOptions } from './reach.ts'

export function registerStop(program: Command): void {
  reaching(program.command('stop'))
    .description(
      'stop what runs of a server, a host’s own or for the operator all of it; the next call starts it again',
    )
    .argument('<name>')
    .action((server: string, options: ReachOptions) =>
      reach(options, 'any', async ({ client, signal }) => {
        const result = await client.call('servers/stop', { server }, { signal })
        printDone(saidOf(server, result.stopped.length), result, options.json)
      }),
    )
}

/** What runs of it for others is not told to who may not stop that. */
const saidOf = (server: string, ended: number): string =>
  ended === 0
    ? `nothing that is yours to stop was running of ${server}`
    : `${server} is stopped: ${counted(ended, 'instance')} ended, nothing of them is left`
