// `sallyport release NAME`: the end of a hold, or of a server's quarantine.
import { type Command, Option } from 'commander'
import { printDone } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface ReleaseOptions extends ReachOptions {
  readonly hold?: boolean
  readonly quarantine?: boolean
  readonly reason?: string
}

export function registerRelease(program: Command): void {
  reaching(program.command('release'))
    .description('end a hold, or the quarantine of a server')
    .argument('<name>', 'of the hold, or of the server')
    .addOption(new Option('--hold', 'only the hold').conflicts('quarantine'))
    .option('--quarantine', 'only the quarantine')
    .option('--reason <text>', 'why, for the record')
    .action((name: string, options: ReleaseOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { hold, quarantine, reason } = options
        const asked = {
          name,
          ...(hold === true && { what: 'hold' as const }),
          ...(quarantine === true && { what: 'quarantine' as const }),
          ...(reason !== undefined && { reason }),
        }
        const result = await client.call('servers/release', asked, { signal })
        printDone(`${name}: ended the ${result.released.join(' and the ')}`, result, options.json)
      }),
    )
}
