// `sallyport approve ID`: yes to one call, or to all like it.
import { type Command, Option } from 'commander'
import { printDone } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'
import { approvalId } from './word.ts'

interface ApproveOptions extends ReachOptions {
  readonly scope: 'once' | 'session' | 'policy'
}

export function registerApprove(program: Command): void {
  reaching(program.command('approve'))
    .description('say yes to a call that waits')
    .argument('<id>', 'of sallyport approvals', approvalId)
    .addOption(
      new Option(
        '--scope <scope>',
        'this call, equal calls of its session, or of its user until the time is over',
      )
        .choices(['once', 'session', 'policy'])
        .default('once'),
    )
    .action((id: string, options: ApproveOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const result = await client.call('approvals/approve', { id, scope: options.scope }, { signal })
        printDone(`approved, ${result.scope}`, result, options.json)
      }),
    )
}
