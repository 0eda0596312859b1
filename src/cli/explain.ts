// `sallyport explain SERVER TOOL`: what a call would meet, step by step, and which line decides.
import type { Command } from 'commander'
import type { OperatorMethods } from '../rpc/protocol.ts'
import type { ExplainedStep } from '../rpc/governed.ts'
import { argumentsOf } from './call.ts'
import { paint, printJson, printTable, visible } from './output.ts'
import type { Cell } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface ExplainOptions extends ReachOptions {
  readonly args?: string
  readonly a?: readonly string[]
  readonly lineage?: string
}

export function registerExplain(program: Command): void {
  reaching(program.command('explain'))
    .description('say what a call would come to, and which line of which file decides it')
    .argument('<server>')
    .argument('<tool>', 'the server’s own name for it, or a method such as resources/read')
    .option('--args <json>', 'arguments as one JSON object')
    .option('-a <key=value...>', 'one argument; the value is JSON where it reads as JSON, else text')
    .option('--lineage <text>', 'lineage of the call')
    .action((server: string, tool: string, options: ExplainOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { lineage } = options
        const given = { server, tool, arguments: argumentsOf(options) }
        const asked = lineage === undefined ? given : { ...given, lineage }
        const result = await client.call('policy/explain', asked, { signal })
        if (options.json === true) printJson(result)
        else print(result)
        if (result.outcome === 'refused') process.exitCode = 2
      }),
    )
}

const styles = { pass: 'green', ask: 'yellow', refuse: 'red' } as const satisfies Record<
  ExplainedStep['verdict'],
  string
>
const outcomes = {
  sent: { text: 'would be sent', style: 'green' },
  asked: { text: 'would be asked', style: 'yellow' },
  refused: { text: 'would be refused', style: 'red' },
} as const

function print({ outcome, steps, identity }: OperatorMethods['policy/explain']['result']): void {
  printTable(
    ['STEP', '', 'WHY'],
    steps.map(({ step, verdict, detail }): (string | Cell)[] => [
      step,
      { text: verdict, style: styles[verdict] },
      detail,
    ]),
  )
  const { text, style } = outcomes[outcome]
  process.stdout.write(`\n${visible(identity ?? 'the call')} ${paint(style, text)}\n`)
}
