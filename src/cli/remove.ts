// `sallyport remove NAME`: stops a server that was registered or launched, and forgets it with all that stood on it.
import type { Command } from 'commander'
import { printDone } from './output.ts'
import { reach, reaching } from './reach.ts'
import { counted } from '../lib/counted.ts'
import type { ReachOptions } from './reach.ts'

export function registerRemove(program: Command): void {
  reaching(program.command('remove'))
    .description('stop and forget a server that was added or launched; its permits and approvals end')
    .argument('<name>')
    .action((server: string, options: ReachOptions) =>
      reach(options, 'any', async ({ client, signal }) => {
        const result = await client.call('servers/remove', { server }, { signal })
        printDone(
          `${server} is removed; ${counted(result.stopped.length, 'instance')} stopped, ${counted(result.permits.length, 'permit')} ended`,
          result,
          options.json,
        )
      }),
    )
}
