// `sallyport start NAME`: has the caller's instance of a server up before the first call needs it, or again after it was lost.
import type { Command } from 'commander'
import { printDone } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

export function registerStart(program: Command): void {
  reaching(program.command('start'))
    .description('start a server before a call does, or again when it waits for a credential or a restart')
    .argument('<name>')
    .action((server: string, options: ReachOptions) =>
      reach(options, 'any', async ({ client, signal }) => {
        const instance = await client.call('servers/start', { server }, { signal })
        printDone(`${server} is ${instance.state}: ${instance.id}`, instance, options.json)
      }),
    )
}
