// `sallyport explain`: what a call would meet, step by step, or how one that was made was decided; and which line decides.
import type { Command } from 'commander'
import { SallyportError } from '../errors.ts'
import type { CallId } from '../lib/ids.ts'
import type { OperatorMethods } from '../rpc/protocol.ts'
import type { ExplainedCall, ExplainedStep } from '../rpc/governed.ts'
import { argumentsOf } from './call.ts'
import { paint, printFields, printJson, printTable, visible } from './output.ts'
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
    .description(
      'say what a call would come to, or how one was decided, and which line of which file decides it',
    )
    .argument('<server|call>', 'server, or alone: the id of a call that was made')
    .argument('[tool]', 'the server’s own name for it, or a method such as resources/read')
    .option('--args <json>', 'arguments as one JSON object')
    .option('-a <key=value...>', 'one argument; the value is JSON where it reads as JSON, else text')
    .option('--lineage <text>', 'lineage of the call')
    .action((which: string, tool: string | undefined, options: ExplainOptions) =>
      tool === undefined ? explainMade(which, options) : explainAsked(which, tool, options),
    )
}

/** A call that could be made. */
async function explainAsked(server: string, tool: string, options: ExplainOptions): Promise<void> {
  await reach(options, 'operator', async ({ client, signal }) => {
    const { lineage } = options
    const given = { server, tool, arguments: argumentsOf(options) }
    const asked = lineage === undefined ? given : { ...given, lineage }
    const result = await client.call('policy/explain', asked, { signal })
    if (options.json === true) printJson(result)
    else print(result)
    if (result.outcome === 'refused') process.exitCode = 2
  })
}

/** A call that was made. */
async function explainMade(id: string, options: ExplainOptions): Promise<void> {
  const { args, a, lineage } = options
  if (!id.startsWith('c-'))
    throw new SallyportError(
      'ERR_USAGE',
      `got ${JSON.stringify(id)} alone, expected SERVER TOOL, or the id of a call`,
    )
  if (args !== undefined || a !== undefined || lineage !== undefined)
    throw new SallyportError(
      'ERR_USAGE',
      `--args, -a and --lineage are for SERVER TOOL; ${id} was made with its own`,
    )
  await reach(options, 'operator', async ({ client, signal }) => {
    const result = await client.call('calls/explain', { call_id: id as CallId }, { signal })
    if (options.json === true) printJson(result)
    else printMade(result)
    if (result.state === 'refused') process.exitCode = 2
  })
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

const placeOf = ({ place }: ExplainedCall): string =>
  place === null ? '' : `, at ${place.path}:${place.line}`

function printMade(call: ExplainedCall): void {
  const { policy, trust, approval, intent, outcome, refusal } = call
  const none = 'none'
  const by = approval?.by === null || approval === null ? '' : ` by uid ${approval.by}`
  printFields([
    ['call', `${call.call_id}, ${call.state}`],
    ['identity', call.identity ?? `${call.server}/${call.subject}, refused before it was known`],
    ['caller', [`uid ${call.principal}`, call.session].filter((part) => part !== '').join(', ')],
    ['decision', call.action ?? 'refused before the rules were asked'],
    ['rule', call.rule === null ? none : `${call.rule}${placeOf(call)}`],
    ['policy', `${policy.version}${policy.is_present ? '' : ', which is not the present one'}`],
    ['trust', trust === null ? none : `${trust.tier}, epoch ${trust.epoch}`],
    [
      'approval',
      approval === null
        ? none
        : approval.granted
          ? `${approval.id ?? ''} ${approval.scope ?? ''}${by}, record ${approval.seq}`
          : `not given${by}: ${approval.reason ?? ''}, record ${approval.seq}`,
    ],
    ['permit', call.permit ?? none],
    ['check', call.check ?? 'not reached'],
    ['intent', intent === null ? none : `record ${intent.seq}, ${intent.at}`],
    [
      'outcome',
      outcome === null
        ? none
        : [
            `${outcome.outcome}, record ${outcome.seq}, ${outcome.at}`,
            ...(outcome.detail === null ? [] : [outcome.detail]),
          ],
    ],
    ['refusal', refusal === null ? none : `${refusal.code}, record ${refusal.seq}, ${refusal.at}`],
    ['reason', call.reason],
    ['would change it', call.change],
  ])
}
