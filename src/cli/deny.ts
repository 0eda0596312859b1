// `sallyport deny ID`: no to a call that waits, or the end of an approval that stands.
import type { Command } from 'commander'
import { printDone } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'
import { approvalId } from './word.ts'

interface DenyOptions extends ReachOptions {
  readonly reason?: string
}

export function registerDeny(program: Command): void {
  reaching(program.command('deny'))
    .description('say no to a call that waits, or end an approval that stands')
    .argument('<id>', 'of sallyport approvals', approvalId)
    .option('--reason <text>', 'why; the caller is told')
    .action((id: string, options: DenyOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { reason } = options
        const result = await client.call('approvals/deny', reason === undefined ? { id } : { id, reason }, {
          signal,
        })
        printDone('denied', result, options.json)
      }),
    )
}
