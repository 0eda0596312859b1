// `sallyport reload`: the daemon goes over to what its configuration says now, wholly or not at all.
import type { Command } from 'commander'
import { hint, printDone } from './output.ts'
import { reach, reaching } from './reach.ts'
import { counted } from '../lib/counted.ts'
import type { ReachOptions } from './reach.ts'

export function registerReload(program: Command): void {
  reaching(program.command('reload'))
    .description('have the daemon read its configuration again; only servers that it changes are stopped')
    .action((options: ReachOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const result = await client.call('daemon/reload', {}, { signal })
        const done = `reloaded; ${counted(result.unchanged.length, 'server is', 'servers are')} as before`
        if (options.json === true) return printDone(done, result, true)
        for (const warning of result.warnings) hint(`warning: ${warning}`)
        for (const { server, code, reason } of result.left_out)
          hint(`${server} is left out: ${reason} (${code})`)
        for (const what of ['added', 'changed', 'removed'] as const)
          if (result[what].length > 0) hint(`${what}: ${result[what].join(', ')}`)
        hint(done)
      }),
    )
}
