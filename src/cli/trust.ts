// `sallyport trust`: what each tool has earned by its own calls, and what it has done to lose it.
import type { Command } from 'commander'
import type { TrustView } from '../rpc/governed.ts'
import { counted } from '../lib/counted.ts'
import { hint, isDone, printJson, printTable } from './output.ts'
import type { Cell } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface ResetOptions extends ReachOptions {
  readonly reason?: string
}

export function registerTrust(program: Command): void {
  const trust = program.command('trust').description('show and reset what tools have earned')
  reaching(trust.command('list', { isDefault: true }))
    .description('list every tool that was accepted or called, by its canonical identity')
    .argument('[server]')
    .action((server: string | undefined, options: ReachOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const result = await client.call('trust/list', server === undefined ? {} : { server }, { signal })
        if (options.json === true) printJson(result)
        else print(result.trust)
      }),
    )
  reaching(trust.command('reset'))
    .description('let a tool, or all tools of a server, begin anew; their permits and approvals end')
    .argument('<server>')
    .argument('[tool]')
    .option('--reason <text>', 'why, for the record')
    .action((server: string, tool: string | undefined, options: ResetOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { reason } = options
        const asked = {
          server,
          ...(tool === undefined ? {} : { tool }),
          ...(reason === undefined ? {} : { reason }),
        }
        const { reset } = await client.call('trust/reset', asked, { signal })
        isDone(`trust in ${counted(reset.length, 'tool')} of ${server} begins anew`)
        if (options.json === true) printJson({ reset })
        else print(reset)
      }),
    )
}

const styles = { untrusted: 'yellow', provisional: 'cyan', trusted: 'green' } as const

function print(trust: readonly TrustView[]): void {
  if (trust.length === 0) return hint('no tool was accepted or called yet')
  printTable(
    ['TOOL', 'TIER', 'GOOD CALLS', 'CONFIDENCE', 'RESETS', 'LAST VIOLATION'],
    trust.map(({ identity, tier, evidence, confidence, epoch, violations }): (string | Cell)[] => {
      const last = violations.at(-1)
      return [
        identity,
        { text: tier, style: styles[tier] },
        String(evidence),
        String(confidence),
        String(epoch),
        last === undefined ? '–' : `${last.at.slice(0, 16)} ${last.failure}: ${last.detail}`,
      ]
    }),
  )
}
